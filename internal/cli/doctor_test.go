package cli_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// What has been without an outcome for too long is an error, for whoever watches
// the exit status.
func TestDoctorAge(t *testing.T) {
	t.Parallel()
	d := setup(t)
	d.insert(4)
	require.Zero(t, d.cli("doctor").code, "there is time")
	d.exec("update backfill.intake set created_at = now() - interval '30 hours' where id <= 3")
	// 1 is queued, 2 missing, 3 failed and waits; 4 is young.
	d.exec("update backfill.batch set ids = '{[1,2),[4,5)}'")
	d.exec(`insert into backfill.extraction (capture_id, extractor_id, version, state, outcome, next_attempt_at)
		values (3, 1, '', 'retry', 'panic', now() + interval '1 hour')`)
	r := d.cli("doctor")
	require.Equal(t, 1, r.code)
	require.Regexp(t, `(?m)^error +age +3 captures older than 1d without an outcome, the oldest 30h0m0s old\n +→ backfill failures`, r.out)
	require.Contains(t, d.cli("doctor", "--max-age", "2d").ok().out, "every capture older than 2d has its outcome")
	d.cli("doctor", "--max-age", "long").fails(2, "2d or 12h")

	d.exec("update backfill.extraction set state = 'dead'") // given up: that is an outcome, and a warning
	require.Zero(t, d.cli("run", "--local").code)
	require.Contains(t, d.cli("doctor").ok().out, "every capture older than 1d has its outcome")
}
