package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/justfortytwo/backfill/extract"
	"github.com/justfortytwo/backfill/extract/llm"
	"github.com/justfortytwo/backfill/heuristic"
)

// maxInputBytes bounds one input of extract: the longest text that is extracted
// anywhere, with room for JSON escapes.
const maxInputBytes = 64 << 20

func (a *app) extractCmd() *cobra.Command {
	var lines bool
	var name string
	cmd := &cobra.Command{
		Use:   "extract",
		Short: "Extract candidates from stdin, without a database",
		Long: `Extract candidate memories from the text on stdin.

With --jsonl, stdin holds one JSON object a line: {"id", "text", "source", "observed",
"date"}; only text is required. One line is written per line read:
{"id", "classify", "entities", "candidates"}, where classify is the kind of the text
as a whole and entities are those of the whole text.

With --extractor llm, the text goes to the model that BACKFILL_LLM_MODEL names, after
secrets were taken out of it. A line that the model refuses is reported and left out.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			e, err := a.extractor(cmd, name)
			if err != nil {
				return err
			}
			if lines {
				return a.extractLines(cmd.Context(), e)
			}
			return a.extractText(cmd.Context(), e)
		},
	}
	cmd.Flags().StringVar(&name, "extractor", "heuristic", "heuristic or llm")
	cmd.Flags().BoolVar(&lines, "jsonl", false, "read and write JSON lines")
	return cmd
}

func (a *app) extractText(ctx context.Context, e extract.SalienceExtractor) error {
	raw, err := io.ReadAll(io.LimitReader(a.stdin, maxInputBytes+1))
	if err != nil {
		return fmt.Errorf("reading stdin: %w", err)
	}
	if len(raw) > maxInputBytes {
		return fmt.Errorf("stdin is longer than %d MiB: split it", maxInputBytes>>20)
	}
	found, err := e.ExtractSalient(ctx, extract.Turn{Text: strings.ToValidUTF8(string(raw), "\uFFFD")}, a.cfg.Options())
	if err != nil {
		return fmt.Errorf("extracting: %w", err)
	}
	for _, c := range found {
		if a.json {
			if err := a.writeJSON(c); err != nil {
				return err
			}
			continue
		}
		fmt.Fprintf(a.stdout, "%-10s %.2f  %s\n", c.Kind, c.Salience, oneLine(c.Content, 500))
	}
	if len(found) == 0 {
		fmt.Fprintln(a.stderr, "nothing durable found")
	}
	return nil
}

// inputLine is a line that extract reads.
type inputLine struct {
	ID json.RawMessage `json:"id"`
	extract.Turn
	// Text is nil where there is none.
	Text *string `json:"text"`
}

// outputLine is what it writes for that.
type outputLine struct {
	ID         json.RawMessage     `json:"id"`
	Classify   heuristic.Kind      `json:"classify"`
	Entities   []string            `json:"entities"`
	Candidates []extract.Candidate `json:"candidates"`
}

func (a *app) extractLines(ctx context.Context, e extract.SalienceExtractor) error {
	in := bufio.NewReaderSize(a.stdin, 1<<20)
	out := bufio.NewWriterSize(a.stdout, 1<<16)
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	bad, n := 0, 0
	for {
		line, err := readLine(in)
		if errors.Is(err, io.EOF) {
			break
		}
		n++
		var t inputLine
		switch {
		case errors.Is(err, errLongLine):
		case err != nil:
			return fmt.Errorf("reading stdin: %w", err)
		case strings.TrimSpace(string(line)) == "":
			continue
		default:
			if err = json.Unmarshal(line, &t); err != nil || t.Text == nil {
				err = errors.New(`this is not a JSON object such as {"id": 1, "text": "…"}`)
			}
		}
		if err != nil {
			bad++
			fmt.Fprintf(a.stderr, "error: -:%d: %s\n", n, err)
			continue
		}
		t.Turn.Text = *t.Text
		found, err := e.ExtractSalient(ctx, t.Turn, a.cfg.Options())
		if about := llm.KindOf(err); about == llm.FailCapture || about == llm.BadOutput {
			bad++
			fmt.Fprintf(a.stderr, "error: -:%d: %s\n", n, err)
			continue
		}
		if err != nil {
			return errors.Join(out.Flush(), fmt.Errorf("extracting line %d: %w", n, err))
		}
		kind, _ := heuristic.ClassifyWith(*t.Text, a.cfg.ClassifyMaxChars)
		o := outputLine{ID: t.ID, Classify: kind, Entities: heuristic.Entities(*t.Text), Candidates: found}
		if o.Entities == nil {
			o.Entities = []string{}
		}
		if o.Candidates == nil {
			o.Candidates = []extract.Candidate{}
		}
		if err := enc.Encode(o); err != nil {
			return fmt.Errorf("writing the output: %w", err)
		}
		if in.Buffered() == 0 { // somebody types, or a pipe waits for the answer
			if err := out.Flush(); err != nil {
				return fmt.Errorf("writing the output: %w", err)
			}
		}
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("writing the output: %w", err)
	}
	if bad > 0 {
		return exit(exitItemErrors)
	}
	return nil
}

var errLongLine = fmt.Errorf("this line is longer than %d MiB", maxInputBytes>>20)

// readLine reads a line without its end; one that is too long is read past and
// reported.
func readLine(r *bufio.Reader) ([]byte, error) {
	var line []byte
	long := false
	for {
		part, more, err := r.ReadLine()
		if err != nil {
			return nil, err //nolint:wrapcheck // io.EOF is compared
		}
		if long = long || len(line)+len(part) > maxInputBytes; long {
			line = nil
		} else {
			line = append(line, part...)
		}
		if !more {
			if long {
				return nil, errLongLine
			}
			return line, nil
		}
	}
}
