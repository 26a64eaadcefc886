package llm

import (
	"context"
	"errors"
	"time"

	"github.com/justfortytwo/backfill/extract"
)

// Probe is what one tiny completion showed.
type Probe struct {
	Endpoint string
	// Model is what was asked for, Returned what answered.
	Model, Returned string
	Latency         time.Duration
	// Shape is what the endpoint takes.
	Shape Shape
}

// Probe asks for one tiny completion, past breaker, limits and budget. A nil error
// means that requests succeed again, and ends every pause of this client. The result holds what is known in any case.
func (c *Client) Probe(ctx context.Context) (Probe, error) {
	p := Probe{Endpoint: c.Endpoint(), Model: c.cfg.Model}
	r := extract.Request{System: "Answer with JSON only.", Prompt: `Answer with {"memories":[]}`}
	start := c.cfg.now()
	var err error
	for range maxSteps + 1 {
		shape := c.ladder.now()
		var got answer
		got, err = c.send(ctx, r, shape, false)
		p.Returned = got.Model
		var e *Error
		if !errors.As(err, &e) || e.Kind != Degrade || !c.ladder.down(e.feature, shape) {
			break
		}
	}
	p.Latency, p.Shape = c.cfg.now().Sub(start), c.ladder.now()
	if KindOf(err) == BadOutput {
		err = nil // it answers; what it says to a probe is of no interest
	}
	if err == nil {
		c.Resume()
	}
	return p, err
}
