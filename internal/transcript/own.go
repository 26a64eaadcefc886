package transcript

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/justfortytwo/backfill/extract"
)

// workDir is the name of the directory this program keeps its data in.
const workDir = ".backfill"

// ownPrompt is how package extract frames a turn for a model.
var ownPrompt = regexp.MustCompile(`^Turn date: [^\n]{1,40}\n=== turn [A-Z2-7]{26} begins ===\n`)

// isOwn reports whether c comes from an extraction. A model may be behind a program
// that logs what it is asked, as Claude Code does: its logs would be extracted, and
// that logged again. It is told by what it was asked, or by running in our directory.
func isOwn(c *Capture) bool {
	cwd, _ := c.Meta["cwd"].(string)
	if slices.Contains(strings.Split(filepath.ToSlash(cwd), "/"), workDir) {
		return true
	}
	first := c.Turns[0]
	if first.Role != RoleUser {
		return false
	}
	// Where there is no system prompt, it stands in front.
	return ownPrompt.MatchString(strings.TrimSpace(strings.TrimPrefix(first.Text, extract.SystemPrompt)))
}
