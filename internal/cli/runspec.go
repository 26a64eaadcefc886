package cli

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/justfortytwo/backfill/jobs"
	"github.com/justfortytwo/backfill/store"
)

// runSpec is the run that the options ask for; its extractor is looked up later.
func (a *app) runSpec(o runOptions) (store.NewRun, error) {
	spec := store.NewRun{
		Kind: store.KindRun, Reprocess: store.Reprocess(o.reprocess), Order: store.Order(o.order), Who: osUser(), Why: o.why,
		Filter: store.Filter{Sources: o.sources, Limit: o.limit},
	}
	switch spec.Reprocess {
	case store.ReprocessMissing, store.ReprocessFailed, store.ReprocessStale, store.ReprocessAll:
	default:
		return spec, fmt.Errorf("--reprocess %q is not known: use missing, failed, stale or all", o.reprocess)
	}
	if spec.Order != store.Oldest && spec.Order != store.Newest {
		return spec, fmt.Errorf("--order %q is not known: use oldest or newest", o.order)
	}
	switch {
	case o.limit < 0:
		return spec, fmt.Errorf("--limit is %d: use a number of captures from 1 on", o.limit)
	case o.show && o.limit == 0:
		return spec, errors.New("--print needs --limit: say how many captures to extract for it")
	}
	if slices.Contains(o.sources, "") {
		return spec, errors.New("--source is empty: every capture has a source")
	}
	location, err := a.cfg.Location()
	if err != nil {
		return spec, err
	}
	now := time.Now().In(location)
	if o.since != "" {
		if spec.Filter.Since, err = moment("since", o.since, location, 0); err != nil {
			return spec, err
		}
	}
	if o.until != "" {
		if spec.Filter.Until, err = moment("until", o.until, location, 1); err != nil {
			return spec, err
		}
		if !spec.Filter.Since.Before(spec.Filter.Until) {
			return spec, fmt.Errorf("--until %s is before --since %s: nothing is in between", o.until, o.since)
		}
	}
	if o.sample != "" {
		percent, ok := strings.CutSuffix(o.sample, "%")
		share, err := strconv.ParseFloat(percent, 64)
		if !ok || err != nil || !(share > 0 && share <= 100) {
			return spec, fmt.Errorf("--sample is %q: use a share such as 1%%", o.sample)
		}
		spec.Filter.Sample = share / 100
	}
	if spec.IDs, err = a.captureIDs(o.ids); err != nil {
		return spec, err
	}
	for _, key := range settingKeys() {
		if value := *o.settings[key]; value != "" {
			set, err := setting(key, value, now)
			if err != nil {
				return spec, fmt.Errorf("--%w", err)
			}
			set(&spec.Settings)
		}
	}
	if err := spec.Settings.Validate(); err != nil {
		return spec, fmt.Errorf("--%w", err)
	}
	if o.nightly {
		nightly := jobs.NightlyRun(0, now)
		nightly.Who, nightly.Why, nightly.Settings = spec.Who, cmp.Or(spec.Why, nightly.Why), spec.Settings
		return nightly, nil
	}
	return spec, nil
}

// noneEmpty refuses flags that were given without a value, or as 0: a variable of the
// shell that is not set must not widen what a command takes.
func noneEmpty(cmd *cobra.Command, flags ...string) error {
	for _, name := range flags {
		f := cmd.Flags().Lookup(name)
		if v := f.Value.String(); f.Changed && (v == "" || v == "0") {
			return fmt.Errorf("--%s is %q: give it a value, or leave it out", name, v)
		}
	}
	return nil
}

// moment reads a date, to which days are added, or a time.
func moment(flag, s string, location *time.Location, days int) (time.Time, error) {
	if date, err := time.ParseInLocation(time.DateOnly, s, location); err == nil {
		return date.AddDate(0, 0, days), nil
	}
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		return t, fmt.Errorf("--%s %q is neither a date such as 2026-01-31 nor a time such as 2026-01-31T09:00:00Z", flag, s)
	}
	return t, nil
}

// maxIDs is as many captures as one names; more are chosen by a filter.
const maxIDs = 1_000_000

// captureIDs reads the value of --ids. Nil if it was not given.
func (a *app) captureIDs(value string) ([]int64, error) {
	switch value {
	case "":
		return nil, nil
	case "-":
		return readIDs(a.stdin)
	}
	return readIDs(strings.NewReader(value))
}

// readIDs reads ids of captures, one a line or separated by commas. What is none is
// named, with its line.
func readIDs(r io.Reader) ([]int64, error) {
	var ids []int64
	var wrong []string
	lines := bufio.NewReader(r)
	for n := 1; ; n++ {
		line, err := lines.ReadString('\n')
		for word := range strings.FieldsFuncSeq(line, func(r rune) bool { return r == ',' || r <= ' ' }) {
			id, err := strconv.ParseInt(word, 10, 64)
			if err != nil {
				wrong = append(wrong, fmt.Sprintf("line %d: %q", n, oneLine(word, 40)))
			}
			ids = append(ids, id)
		}
		switch {
		case len(ids) > maxIDs:
			return nil, fmt.Errorf("--ids names more than %d captures: choose them by --source, --since or --until", maxIDs)
		case err == nil:
			continue
		case !errors.Is(err, io.EOF):
			return nil, fmt.Errorf("reading --ids: %w", err)
		case len(wrong) > 5:
			return nil, fmt.Errorf("--ids: these are no numbers of captures: %s, and %d more", strings.Join(wrong[:5], ", "), len(wrong)-5)
		case len(wrong) > 0:
			return nil, fmt.Errorf("--ids: this is no number of a capture: %s", strings.Join(wrong, ", "))
		case len(ids) == 0:
			return nil, errors.New("--ids names no captures: give their numbers, one a line or separated by commas")
		}
		return ids, nil
	}
}
