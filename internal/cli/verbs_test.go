package cli_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/justfortytwo/backfill/heuristic"
)

// The main job by its verbs, as a person reads it and as a program does.
func TestVerbs(t *testing.T) {
	t.Parallel()
	d := setup(t)
	d.exec("update backfill.extractor set on_insert = false") // the run queues them
	path := file(t, "turns.jsonl", decision, preference, smallTalk)

	require.Equal(t, "3 new, 0 changed, 0 unchanged captures in 1 file\n", d.cli("import", path).ok().out)
	require.Equal(t, "0 new, 0 changed, 3 unchanged captures in 1 file\n", d.cli("import", path).ok().out)
	ids := map[string]int64{}
	for _, id := range []string{"d", "p", "s"} {
		ids[id] = query[int64](d, "select id from backfill.intake where external_id = 'native:' || $1", id)
	}
	show := fmt.Sprint(ids["d"])
	require.Contains(t, d.cli("show", show).ok().out, "no extractor has seen it: `backfill run` takes it up")

	r := d.cli("run", "--local", "--reason", "first").ok()
	require.Equal(t, "run 1: 3 captures in 1 batch\nheuristic: 3 captures done meanwhile: 2 staged, 1 empty, 0 skipped, 2 candidates\n"+
		"run 1: succeeded: 1 empty, 2 staged, 2 candidates\n", r.out)

	require.Regexp(t, `(?m)^EXTRACTOR .*\nheuristic +\S+ +2 +1 +0 +0 +0 +0 +0 +0 +0 +2 +-\n`, d.cli("status").ok().out)
	status := d.cli("status", "--json").ok().objects()
	require.Len(t, status, 2)
	require.Equal(t, "heuristic", status[0]["extractor"])
	require.InDelta(t, 2, status[0]["staged"], 0)
	require.InDelta(t, 1, status[0]["empty"], 0)

	require.Equal(t, "run 1  succeeded  3/3 (100.0%)  1 empty, 2 staged\n", d.cli("status", "1", "--watch").ok().out)
	run := d.cli("status", "1", "--json").ok().object()
	requireKeys(t, run, "run", "state", "total", "done", "outcomes", "rate", "eta_seconds", "cost", "reason")
	require.Equal(t, map[string]any{
		"run": 1.0, "state": "succeeded", "total": 3.0, "done": 3.0, "outcomes": map[string]any{"staged": 2.0, "empty": 1.0},
		"rate": 0.0, "eta_seconds": nil, "cost": nil, "reason": "",
	}, run)

	shown := d.cli("show", show).ok().out
	for _, s := range []string{
		"capture " + show + "  source owner  id native:d  occurred 2026-01-31", "    We decided to use Postgres", "heuristic",
		"done, staged (attempt 1", "decision", "entities: postgres, mongodb",
	} {
		require.Contains(t, shown, s)
	}
	history := d.cli("show", show, "--json").ok().object()
	requireKeys(t, history, "capture", "ledger", "candidates", "open_batches")
	require.Len(t, history["candidates"], 1)

	require.Regexp(t, `(?m)^1 +1 +mongodb$`, d.cli("entities").ok().out)
	entities := d.cli("entities", "--limit", "1", "--json").ok().object()
	requireKeys(t, entities, "entity", "candidates", "captures")
	require.Regexp(t, "^"+show+" +decision +[01][.][0-9]{2}  We decided to use Postgres", d.cli("entities", "Postgres").ok().out)
	named := d.cli("entities", "POSTGRES", "--json").ok().object()
	require.Equal(t, "decision", named["kind"])
	require.Equal(t, "no candidate names \"nobody\"\n", d.cli("entities", "nobody").ok().out)
	require.Empty(t, d.cli("entities", "nobody", "--json").ok().out)

	require.Equal(t, "no failures\n", d.cli("failures").ok().out)
	require.Empty(t, d.cli("failures", "--json").ok().out)

	require.Regexp(t, `(?m)^1 +run +heuristic +missing +succeeded +3 +3 +0 +2 `, d.cli("runs").ok().out)
	runs := d.cli("runs", "--json").ok().object()
	require.Equal(t, "first", runs["why"])
	require.InDelta(t, 3, runs["done"], 0)

	for _, f := range d.cli("doctor", "--json").ok().objects() {
		requireKeys(t, f, "level", "check", "found", "do?")
		require.Equal(t, "ok", f["level"], f)
	}
	require.Contains(t, d.cli("doctor").ok().out, "migrations")

	d.exec("delete from backfill.intake where id = $1", ids["s"])
	require.Contains(t, d.cli("show", fmt.Sprint(ids["s"])).ok().out, "was deleted")
}

func TestMigrate(t *testing.T) {
	t.Parallel()
	d := setup(t)
	require.Equal(t, "the schema is up to date\n", d.cli("migrate", "up").ok().out)
	d.exec("delete from backfill.extractor_version")
	d.exec("update backfill.extractor set version = '0' where name = 'heuristic'")
	require.Equal(t, "the schema is up to date\nheuristic: version "+heuristic.Version+" takes the place of 0; `backfill run --extractor heuristic --reprocess stale --dry-run` says what that has done\n",
		d.cli("migrate", "up").ok().out)
	require.Equal(t, map[string]any{"applied": 0.0}, d.cli("migrate", "up", "--json").ok().object())
	all := d.cli("migrate", "status", "--json").ok().objects()
	for _, m := range all {
		require.Equal(t, true, m["applied"], m)
	}
	require.Regexp(t, `(?m)^backfill +1 +tables +\d{4}-`, d.cli("migrate", "status").ok().out)

	d.cli("migrate", "down").fails(1, "drops tables", "add --yes")
	last := all[len(all)-1]
	require.Equal(t, map[string]any{"rolled_back": last["version"], "name": last["name"]}, d.cli("migrate", "down", "--yes", "--json").ok().object())
	require.Contains(t, d.cli("migrate", "status").ok().out, "pending")
	require.Equal(t, "applied 1 migration\n", d.cli("migrate", "up").ok().out)
	require.Equal(t, "rolled back everything\n", d.cli("migrate", "down", "--all", "--yes").ok().out)
	d.cli("status").fails(1, "backfill migrate up")
}

func TestVersion(t *testing.T) {
	t.Parallel()
	v := backfill(t, "", "version", "--json").ok().object()
	requireKeys(t, v, "version", "commit", "extractors")
	require.NotEmpty(t, v["version"])
	require.NotEmpty(t, v["commit"])
	require.NotEmpty(t, v["extractors"].(map[string]any)["heuristic"])
	require.Contains(t, backfill(t, "", "version").ok().out, "heuristic")
	require.Contains(t, backfill(t, "", "--help").ok().out, "Flags beat the environment")
}

// Text that somebody captured, and the names beside it, cannot play with the
// terminal.
func TestTerminal(t *testing.T) {
	t.Parallel()
	const evil = `\u001b]0;owned\u0007\u001b[31m\u009b2J\r\b`
	d := setup(t)
	path := file(t, "evil.jsonl",
		`{"id":"`+evil+`1","source":"`+evil+`s","observed":"`+evil+`","meta":{"`+evil+`":"`+evil+`"},`+
			`"text":"We decided to use Postgres`+evil+` instead of MongoDB because the reports need joins."}`,
		`{"id":"`+evil+`2","text":5}`)
	stdin := `We decided to use Postgres` + "\x1b[31m\x07" + ` instead of MongoDB because the reports need joins.`

	results := []result{ //nolint:prealloc // the rest needs what these leave behind
		backfill(t, "", "import", "--dry-run", path),
		backfill(t, "", "import", "--dry-run", "missing\x1b[31m.jsonl"),
		backfill(t, stdin, "extract"),
		backfill(t, "not JSON \x1b[31m\n", "extract", "--jsonl"),
		d.cli("import", path),
		d.cli("run", "--local"),
	}
	require.NotZero(t, query[int64](d, "select count(*) from backfill.staging where content like '%' || chr(27) || '%'"))
	d.exec(`update backfill.staging set entities = array[E'\x1b[31mentity']`)
	d.exec(`insert into backfill.entity (capture_id, extractor_id, ord, entity) select capture_id, 1, ord, E'\x1b[31mentity' from backfill.staging`)
	d.exec(`update backfill.extraction set handed_to = E'\x1b[31mmemory'`)
	results = append(results,
		d.cli("show", "1"), d.cli("entities"), d.cli("entities", "\x1b[31mentity"), d.cli("entities", "\x1b[31m"), d.cli("status"), d.cli("runs"),
		d.cli("failures"), d.cli("demo", path))
	for _, r := range results {
		requirePlain(t, r.out)
		requirePlain(t, r.err)
	}
	require.Contains(t, d.cli("show", "1").out, "We decided to use Postgres\uFFFD]0;owned")
}
