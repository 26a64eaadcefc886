package store

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func (b *testBundle) imports(captures ...NewCapture) Imported {
	b.Helper()
	done, err := b.store.Import(b.Context(), captures, false)
	require.NoError(b, err)
	return done
}

func requireCounts(b *testBundle, done Imported, added, changed, unchanged int) {
	b.Helper()
	require.Equal(b, [3]int{added, changed, unchanged}, [3]int{done.New, done.Changed, done.Unchanged}, "new, changed, unchanged")
}

func TestImport(t *testing.T) {
	t.Parallel()
	b := setup(t)
	nextID := func() int64 { return query[int64](b, "select last_value from backfill.intake_id_seq") }
	queued := func() int64 { return query[int64](b, "select coalesce(sum(captures), 0) from backfill.batch") }
	full := NewCapture{
		Source: "notes", ExternalID: "1", Observed: "stated", Text: "one", Meta: json.RawMessage(`{"b": 2, "a": [1]}`),
		OccurredAt: time.Date(2026, 1, 31, 10, 0, 0, 123456789, time.FixedZone("", 3600)),
	}
	bare := NewCapture{Source: "notes", ExternalID: "2", Text: "two"}

	requireCounts(b, b.imports(), 0, 0, 0)
	requireCounts(b, b.imports(full, bare), 2, 0, 0)
	require.Equal(t, int64(2), queued())
	stored, err := b.store.History(t.Context(), query[int64](b, "select id from backfill.intake where external_id = '1'"))
	require.NoError(t, err)
	require.Equal(t, "stated", *stored.Capture.Observed)
	require.JSONEq(t, `{"a": [1], "b": 2}`, string(stored.Capture.Meta))
	require.True(t, query[bool](b, "select occurred_at = '2026-01-31 09:00:00.123456Z' from backfill.intake where external_id = '1'"))
	require.True(t, query[bool](b, "select occurred_at is null and observed is null and meta = '{}' from backfill.intake where external_id = '2'"),
		"unknown is null")

	// The same again: nothing is written, nothing is queued and no id is used up.
	before := nextID()
	rowVersions := func() string {
		return query[string](b, "select string_agg(ctid::text || xmin::text, ',' order by id) from backfill.intake")
	}
	rows := rowVersions()
	for range 3 {
		requireCounts(b, b.imports(full, bare), 0, 0, 2)
	}
	require.Equal(t, before, nextID())
	require.Equal(t, rows, rowVersions())
	require.Equal(t, int64(2), queued())

	// Each field makes a difference, and only new text is extracted again.
	for i, change := range []func(*NewCapture){
		func(c *NewCapture) { c.Observed = "inferred" },
		func(c *NewCapture) { c.Meta = json.RawMessage(`{}`) },
		func(c *NewCapture) { c.OccurredAt = time.Time{} },
	} {
		change(&full)
		requireCounts(b, b.imports(full, bare), 0, 1, 1)
		require.Equal(t, int64(2), queued(), "change %d", i)
	}
	full.Text = "one, and more"
	requireCounts(b, b.imports(full, bare), 0, 1, 1)
	require.Equal(t, int64(3), queued())
	require.Equal(t, int64(2), query[int64](b, "select count(*) from backfill.intake"))

	// An id is unique within its source only.
	bare.Source = "mail"
	requireCounts(b, b.imports(bare), 1, 0, 0)
}

func TestImportDuplicates(t *testing.T) {
	t.Parallel()
	b := setup(t)
	done := b.imports(
		NewCapture{Source: "s", ExternalID: "1", Text: "first"},
		NewCapture{Source: "s", ExternalID: "2", Text: "other"},
		NewCapture{Source: "s", ExternalID: "1", Text: "last"},
	)
	require.Equal(t, 2, done.New)
	require.Empty(t, done.Refused)
	require.Equal(t, "last", query[string](b, "select text from backfill.intake where external_id = '1'"))

	// Without an id nothing is known to be the same.
	same := NewCapture{Source: "s", Text: "again"}
	requireCounts(b, b.imports(same, same), 2, 0, 0)
	requireCounts(b, b.imports(same), 1, 0, 0)
	// Nor is a row without an id mistaken for the one whose id is its position.
	requireCounts(b, b.imports(same, NewCapture{Source: "s", ExternalID: "0", Text: "zero"}), 2, 0, 0)
	require.Equal(t, int64(4), query[int64](b, "select count(*) from backfill.intake where external_id is null"))
}

// What Postgres refuses is found among its neighbours, which are stored.
func TestImportRefused(t *testing.T) {
	t.Parallel()
	b := setup(t)
	const n = 100
	bad := map[int]NewCapture{
		0:  {Source: "s", ExternalID: "0", Text: "x", Meta: json.RawMessage(`{"nul": "\u0000"}`)},
		1:  {Source: "", ExternalID: "1", Text: "x"},
		49: {Source: "s", ExternalID: strings.Repeat("long", 129), Text: "x"},
		50: {Source: "s", ExternalID: "50", Text: "x", Meta: json.RawMessage(`{"cut": `)},
		99: {Source: "s", ExternalID: "99", Text: "x", Meta: json.RawMessage(`{"lone": "\ud800"}`)},
	}
	captures := make([]NewCapture, n)
	for i := range captures {
		c, ok := bad[i]
		if !ok {
			c = NewCapture{Source: "s", ExternalID: fmt.Sprint(i), Text: "NUL \x00 and a cut rune \xe2\x82"}
		}
		captures[i] = c
	}
	done := b.imports(captures...)
	requireCounts(b, done, n-len(bad), 0, 0)
	require.Equal(t, slices.Sorted(maps.Keys(bad)), slices.Sorted(maps.Keys(done.Refused)))
	require.EqualError(t, done.Refused[0], "SQLSTATE 22P05")
	require.EqualError(t, done.Refused[1], "SQLSTATE 23514")
	require.Equal(t, int64(n-len(bad)), query[int64](b, `
		select count(*) from backfill.intake where text = U&'NUL \FFFD and a cut rune \FFFD'`))
	requireCounts(b, b.imports(captures...), 0, 0, n-len(bad))

	// All of them bad.
	done = b.imports(bad[0], bad[1])
	requireCounts(b, done, 0, 0, 0)
	require.Len(t, done.Refused, 2)
}

// An import that fails for another reason stores nothing of the call.
func TestImportFails(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec("alter table backfill.intake rename to gone")
	_, err := b.store.Import(t.Context(), []NewCapture{{Source: "s", Text: "x"}}, false)
	require.ErrorIs(t, err, ErrNotMigrated)
	b.exec("alter table backfill.gone rename to intake")

	requireCounts(b, b.imports(NewCapture{Source: "s", ExternalID: "1", Text: "x"}), 1, 0, 0)
	require.Equal(t, int64(1), query[int64](b, "select count(*) from backfill.intake"))
}

// Ids that somebody gave by hand, ahead of the sequence, are an error to be told;
// trying again until the sequence is past them is not.
func TestImportIDsTaken(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec("insert into backfill.intake (id, source, text) select g, 'by hand', 'x' from generate_series(1, 2000) g")
	_, err := b.store.Import(t.Context(), []NewCapture{{Source: "s", ExternalID: "1", Text: "x"}}, false)
	require.True(t, IsConflict(err), "%v", err)
	require.Less(t, query[int64](b, "select last_value from backfill.intake_id_seq"), int64(10))
}

// TestImportHint gives the same result whether captures are said to be new or not.
func TestImportHint(t *testing.T) {
	t.Parallel()
	for _, likelyNew := range []bool{false, true} {
		b := setup(t)
		done, err := b.store.Import(t.Context(), []NewCapture{
			{Source: "s", ExternalID: "1", Text: "one"}, {Source: "s", ExternalID: "2", Text: "two"}, {Source: "", ExternalID: "3", Text: "refused"},
		}, likelyNew)
		require.NoError(t, err)
		require.Equal(t, 2, done.New)
		require.Len(t, done.Refused, 1)
		done, err = b.store.Import(t.Context(), []NewCapture{
			{Source: "s", ExternalID: "1", Text: "changed"}, {Source: "s", ExternalID: "2", Text: "two"}, {Source: "s", ExternalID: "4", Text: "new"},
		}, likelyNew)
		require.NoError(t, err)
		require.Equal(t, Imported{New: 1, Changed: 1, Unchanged: 1, Refused: map[int]error{}}, done)
	}
}

// TestImportGrows keeps the longer of two copies, in any order.
func TestImportGrows(t *testing.T) {
	t.Parallel()
	b := setup(t)
	text := func(captures ...NewCapture) string {
		t.Helper()
		_, err := b.store.Import(t.Context(), captures, false)
		require.NoError(t, err)
		var text string
		require.NoError(t, b.pool.QueryRow(t.Context(), "select text from backfill.intake").Scan(&text))
		return text
	}
	short := NewCapture{Source: "s", ExternalID: "1", Text: "short", Grows: true}
	long := NewCapture{Source: "s", ExternalID: "1", Text: "short and long", Grows: true}
	require.Equal(t, "short and long", text(long, short))
	require.Equal(t, "short and long", text(short))
	require.Equal(t, "short and long", text(short, long))
	other := NewCapture{Source: "s", ExternalID: "1", Text: "else", Grows: true}
	require.Equal(t, "else", text(other), "another answer is no copy that ends earlier")
	require.Equal(t, "short and long", text(long))
	short.Grows = false
	require.Equal(t, "short", text(short), "whoever does not grow, changes")
}

// Two imports of the same captures in opposite orders fall victim to each other in
// the database, and nobody notices.
func TestImportsInOppositeOrders(t *testing.T) {
	t.Parallel()
	b := setup(t)
	captures := func(round int) []NewCapture {
		all := make([]NewCapture, 300)
		for i := range all {
			all[i] = NewCapture{Source: "s", ExternalID: fmt.Sprint(i), Text: fmt.Sprint("round ", round)}
		}
		return all
	}
	_, err := b.store.Import(t.Context(), captures(0), true)
	require.NoError(t, err)
	var wg sync.WaitGroup
	errs := make(chan error, 20)
	for worker := range 2 {
		wg.Go(func() {
			for round := range 10 {
				all := captures(1 + 2*round + worker)
				if worker == 1 {
					slices.Reverse(all)
				}
				_, err := b.store.Import(context.Background(), all, false)
				errs <- err
			}
		})
	}
	wg.Wait()
	close(errs)
	for err := range errs {
		require.NoError(t, err)
	}
}
