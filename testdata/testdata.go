// Package testdata carries the sample conversations of the demo.
package testdata

import "embed"

// Conversations holds conversations/*.jsonl, native turns written for this
// repository.
//
//go:embed conversations/*.jsonl
var Conversations embed.FS
