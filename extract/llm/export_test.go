package llm

import (
	"context"
	"net/http"
	"time"

	"github.com/justfortytwo/backfill/extract"
)

// Calls is Complete with the record of each request.
func (c *Client) Calls(ctx context.Context, r extract.Request) (extract.Completion, []Call, error) {
	return c.complete(ctx, r, false)
}

// Wait is the pause that a response asks for.
func Wait(status int, h http.Header, now time.Time) time.Duration { return wait(status, h, now) }

// Estimate is the number of tokens of s.
func Estimate(s string) int { return estimate(s) }
