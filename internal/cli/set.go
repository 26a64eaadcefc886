package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/justfortytwo/backfill/store"
)

// settingHelp describes the settings of a run.
//
//nolint:gochecknoglobals // a constant
var settingHelp = map[string]string{
	"concurrency":    "how many of its batches may be in work at once, over all workers",
	"batch-size":     "captures in a batch, before it is planned (default the extractor's)",
	"max-cost":       "US dollars that its calls to models may cost; then it stops and can be resumed",
	"deadline":       "when it stops and can be resumed: a time of day such as 06:00, or RFC 3339",
	"max-error-rate": "share of failures, such as 5%, above which it fails, from 50 results on",
}

// settingKeys are the names of the settings, in alphabetical order.
func settingKeys() []string { return slices.Sorted(maps.Keys(settingHelp)) }

func (a *app) setCmd() *cobra.Command {
	var help strings.Builder
	for _, k := range settingKeys() {
		fmt.Fprintf(&help, "\n  %-15s %s", k, settingHelp[k])
	}
	return &cobra.Command{
		Use:   "set RUN KEY=VALUE...",
		Short: "Change the settings of a run while it goes on",
		Long: `Change the settings of a run. Workers read them again before every batch, and
"backfill runs RUN" shows who changed what. KEY=none takes a setting back.
` + help.String(),
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) < 2 {
				return errors.New("say which run, and what to set: set RUN KEY=VALUE")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			location, err := a.cfg.Location()
			if err != nil {
				return err
			}
			var changes []func(*store.Settings)
			var check store.Settings
			for _, arg := range args[1:] {
				key, value, ok := strings.Cut(arg, "=")
				if !ok {
					return a.usage(cmd, fmt.Errorf("%q is not KEY=VALUE", arg))
				}
				set, err := setting(key, value, time.Now().In(location))
				if err != nil {
					return a.usage(cmd, err)
				}
				set(&check)
				changes = append(changes, set)
			}
			if err := check.Validate(); err != nil {
				return a.usage(cmd, err)
			}
			return a.withRun(cmd, args[0], func(ctx context.Context, st *store.Store, id int64) error {
				set, err := st.Set(ctx, id, osUser(), func(s *store.Settings) {
					for _, change := range changes {
						change(s)
					}
				})
				if err != nil {
					return fmt.Errorf("run %d: %w", id, err)
				}
				if a.json {
					return a.writeJSON(map[string]any{"run": id, "settings": set})
				}
				fmt.Fprintf(a.stdout, "run %d: %s\n", id, settings(set))
				return nil
			})
		},
	}
}

// setting reads the value of a setting; now is in the zone that times of day are in.
func setting(key, value string, now time.Time) (func(*store.Settings), error) {
	none := value == "none"
	wrong := func(use string) error { return fmt.Errorf("%s is %q: use %s, or none", key, value, use) }
	switch key {
	case "concurrency", "batch-size":
		n, err := strconv.Atoi(value)
		if !none && (err != nil || n < 1) {
			return nil, wrong("a number from 1 on")
		}
		if key == "concurrency" {
			return func(s *store.Settings) { s.Concurrency = n }, nil
		}
		return func(s *store.Settings) { s.BatchSize = n }, nil
	case "max-cost":
		cost, err := strconv.ParseFloat(value, 64)
		if !none && (err != nil || !(cost > 0)) {
			return nil, wrong("an amount in US dollars, such as 5.00")
		}
		return func(s *store.Settings) { s.MaxCost = cost }, nil
	case "max-error-rate":
		number, percent := strings.CutSuffix(value, "%")
		rate, err := strconv.ParseFloat(number, 64)
		if percent {
			rate /= 100
		}
		if !none && (err != nil || !(rate > 0 && rate <= 1)) {
			return nil, wrong("a share such as 5%")
		}
		return func(s *store.Settings) { s.MaxErrorRate = rate }, nil
	case "deadline":
		if none {
			return func(s *store.Settings) { s.Deadline = time.Time{} }, nil
		}
		t, err := deadline(value, now)
		if err != nil {
			return nil, wrong("a time of day such as 06:00, or one to come such as 2026-01-31T06:00:00Z")
		}
		return func(s *store.Settings) { s.Deadline = t }, nil
	}
	return nil, fmt.Errorf("there is no setting %q: use %s", key, strings.Join(settingKeys(), ", "))
}

// deadline reads a time of day, which is the next such time after now in now's zone,
// or a time to come.
func deadline(s string, now time.Time) (time.Time, error) {
	if clock, err := time.Parse("15:04", s); err == nil {
		for day := now.Day(); ; day++ {
			// On the day a clock skips this hour, it is the hour after.
			t := time.Date(now.Year(), now.Month(), day, clock.Hour(), clock.Minute(), 0, 0, now.Location())
			if t.After(now) {
				return t, nil
			}
		}
	}
	t, err := time.Parse(time.RFC3339, s)
	if err == nil && !t.After(now) {
		err = errors.New("it is over")
	}
	return t, err
}

// settings is "concurrency 2, max-cost $5.00".
func settings(s store.Settings) string {
	var parts []string
	if s.Concurrency > 0 {
		parts = append(parts, fmt.Sprintf("concurrency %d", s.Concurrency))
	}
	if s.BatchSize > 0 {
		parts = append(parts, fmt.Sprintf("batch-size %d", s.BatchSize))
	}
	if s.MaxCost > 0 {
		parts = append(parts, "max-cost "+dollars(s.MaxCost))
	}
	if !s.Deadline.IsZero() {
		parts = append(parts, "deadline "+when(&s.Deadline))
	}
	if s.MaxErrorRate > 0 {
		parts = append(parts, fmt.Sprintf("max-error-rate %g%%", 100*s.MaxErrorRate))
	}
	if len(parts) == 0 {
		return "no settings"
	}
	return strings.Join(parts, ", ")
}
