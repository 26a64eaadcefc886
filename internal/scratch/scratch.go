// Package scratch makes temporary files that go with the process, however it ends.
package scratch

import (
	"fmt"
	"os"
)

// New creates a temporary file for the pattern of [os.CreateTemp]; done closes and
// removes it. Where an open file can be removed, it has no name from the start.
func New(pattern string) (file *os.File, done func(), err error) {
	file, err = os.CreateTemp("", pattern)
	if err != nil {
		return nil, nil, fmt.Errorf("creating a temporary file: %w", err)
	}
	named := os.Remove(file.Name()) != nil
	return file, func() {
		_ = file.Close()
		if named {
			_ = os.Remove(file.Name())
		}
	}, nil
}
