package scratch_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/justfortytwo/backfill/internal/scratch"
)

func TestNew(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	file, done, err := scratch.New("a-*.b")
	require.NoError(t, err)
	_, err = file.WriteString("text")
	require.NoError(t, err)
	done()
	_, err = file.Write(nil)
	require.ErrorIs(t, err, os.ErrClosed)
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, left)

	t.Setenv("TMPDIR", filepath.Join(dir, "none"))
	_, _, err = scratch.New("a-*.b")
	require.ErrorIs(t, err, os.ErrNotExist)
}
