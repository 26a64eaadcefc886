//go:build !unix

package pglocal

import (
	"context"
	"fmt"
)

const sharedDir = ""

// errUnsupported takes the place of a server on systems whose processes and file
// locks work in another way.
var errUnsupported = fmt.Errorf("%w: this needs a Unix system; set DATABASE_URL to a server you have, or start one with `docker compose up -d db`", ErrNotFound)

func startPersistent(context.Context, *Config) (*Server, error) { return nil, errUnsupported }

func startTemporary(context.Context, *Config) (*Server, error) { return nil, errUnsupported }

func stopPersistent(context.Context, string, string) (bool, error) { return false, errUnsupported }
