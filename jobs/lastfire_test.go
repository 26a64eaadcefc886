package jobs

import (
	"testing"
	"time"

	"github.com/robfig/cron/v3"
	"github.com/stretchr/testify/require"
)

// TestLastFire lets every minute of thirty days go by in which the clocks change:
// each has its night, and it begins when it should.
func TestLastFire(t *testing.T) {
	t.Parallel()
	berlin, err := time.LoadLocation("Europe/Berlin")
	require.NoError(t, err)
	for name, tt := range map[string]struct {
		from time.Time
		cron string
		// The night on which the clocks change, and when it begins.
		change, begins string
	}{
		"spring, skipped":      {time.Date(2026, 3, 14, 12, 0, 0, 0, berlin), "30 2 * * *", "2026-03-29", "03:00 CEST"},
		"spring, after":        {time.Date(2026, 3, 14, 12, 0, 0, 0, berlin), "0 3 * * *", "2026-03-29", "03:00 CEST"},
		"spring, before":       {time.Date(2026, 3, 14, 12, 0, 0, 0, berlin), "59 1 * * *", "2026-03-29", "01:59 CET"},
		"autumn, twice":        {time.Date(2026, 10, 10, 12, 0, 0, 0, berlin), "30 2 * * *", "2026-10-25", "02:30 CEST"},
		"autumn, after":        {time.Date(2026, 10, 10, 12, 0, 0, 0, berlin), "0 3 * * *", "2026-10-25", "03:00 CET"},
		"autumn, at the start": {time.Date(2026, 10, 10, 12, 0, 0, 0, berlin), "0 2 * * *", "2026-10-25", "02:00 CEST"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			schedule, err := cron.ParseStandard(tt.cron)
			require.NoError(t, err)
			usual, ok := lastFire(schedule, tt.from)
			require.True(t, ok)
			begins := map[string]string{}
			for now := tt.from; now.Before(tt.from.AddDate(0, 0, 30)); now = now.Add(time.Minute) {
				night, ok := lastFire(schedule, now)
				require.True(t, ok)
				if date := night.Format(time.DateOnly); begins[date] == "" {
					begins[date] = now.Format("15:04 MST")
				}
			}
			delete(begins, usual.Format(time.DateOnly)) // had begun before
			require.Len(t, begins, 30)
			require.Equal(t, tt.begins, begins[tt.change])
			delete(begins, tt.change)
			for date, at := range begins {
				require.Equal(t, usual.Format("15:04"), at[:5], date)
			}
		})
	}
}

// A schedule that has not fired within two days has no night now.
func TestLastFireNone(t *testing.T) {
	t.Parallel()
	weekly, err := cron.ParseStandard("0 3 * * 1")
	require.NoError(t, err)
	_, ok := lastFire(weekly, time.Date(2026, 3, 4, 2, 59, 0, 0, time.UTC)) // a Wednesday
	require.True(t, ok)
	_, ok = lastFire(weekly, time.Date(2026, 3, 4, 3, 1, 0, 0, time.UTC))
	require.False(t, ok)
}
