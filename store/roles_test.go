package store

import (
	"os"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

// TestRoles: what the roles of deploy/roles.sql may do, and that they may do
// nothing else.
//
//nolint:tparallel // the parts share a database, one after the other
func TestRoles(t *testing.T) {
	t.Parallel()
	b := setup(t)
	script, err := os.ReadFile("../deploy/roles.sql")
	require.NoError(t, err)
	b.exec(string(script))
	b.exec(string(script)) // again: it may be repeated
	b.exec(`insert into backfill.intake (source, text) values ('test', 'a secret of the user')`)
	b.exec(`insert into backfill.extraction (capture_id, extractor_id, version, state, outcome, handoff_due)
		values (1, 1, 'v', 'done', 'staged', now())`)
	b.exec(`insert into backfill.staging (capture_id, extractor_id, ord, salience, fingerprint, content, version)
		values (1, 1, 1, 0.5, gen_random_uuid(), 'a fact', 'v')`)

	as := func(t *testing.T, role string) (may, mayNot func(sql string, args ...any)) {
		t.Helper()
		conn, err := pgx.ConnectConfig(t.Context(), b.pool.Config().ConnConfig)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, conn.Close(b.Context())) })
		_, err = conn.Exec(t.Context(), "set role "+role)
		require.NoError(t, err)
		may = func(sql string, args ...any) {
			t.Helper()
			_, err := conn.Exec(t.Context(), sql, args...)
			require.NoError(t, err, sql)
		}
		mayNot = func(sql string, args ...any) {
			t.Helper()
			_, err := conn.Exec(t.Context(), sql, args...)
			require.Equal(t, "42501", sqlState(err), "%s: %v", sql, err) // insufficient privilege
		}
		return may, mayNot
	}
	views := []string{"v_status", "v_status_exact", "v_run", "v_nightly", "v_failure", "v_candidate", "v_entity", "v_cost", "v_batch"}
	// granted is everything a role holds in our schemas, so that what nobody thought
	// of shows too.
	granted := func(role string) []string {
		return query[[]string](b, `
			select array_agg(what order by what) from (
			    select lower(p) || ' ' || c.oid::regclass as what
			    from pg_class c, unnest('{SELECT,INSERT,UPDATE,REFERENCES}'::text[]) p
			    where c.relnamespace in ('backfill'::regnamespace, 'river'::regnamespace) and c.relkind in ('r', 'v')
			      and has_any_column_privilege($1, c.oid, p)
			    union all
			    select lower(p) || ' ' || c.oid::regclass
			    from pg_class c, unnest('{DELETE,TRUNCATE,TRIGGER}'::text[]) p
			    where c.relnamespace in ('backfill'::regnamespace, 'river'::regnamespace) and c.relkind in ('r', 'v')
			      and has_table_privilege($1, c.oid, p)
			    union all
			    select 'execute ' || f.oid::regproc from pg_proc f
			    where f.pronamespace = 'backfill'::regnamespace and has_function_privilege($1, f.oid, 'execute')
			    union all
			    select 'create in ' || nspname from pg_namespace
			    where nspname in ('backfill', 'river') and has_schema_privilege($1, oid, 'create')) g`, role)
	}

	t.Run("application", func(t *testing.T) {
		before := query[int64](b, "select count(*) from backfill.batch")
		may, mayNot := as(t, "backfill_app")
		may("insert into backfill.intake (source, external_id, text) values ('app', '1', 'one') returning id")
		may("insert into backfill.intake (source, external_id, text) values ('app', '1', 'one'), ('app', '2', 'two') on conflict (source, external_id) do nothing")
		require.Equal(t, int64(2), query[int64](b, "select count(*) from backfill.intake where source = 'app'"))
		require.Equal(t, before+2, query[int64](b, "select count(*) from backfill.batch"), "its work is queued")
		require.True(t, query[bool](b, "select exists (select from river.river_job where kind = 'drain')"), "and announced")
		mayNot("select text from backfill.intake")
		mayNot("insert into backfill.intake (source, text) values ('app', 'three') returning text")
		mayNot("update backfill.intake set text = 'changed'")
		mayNot("select * from backfill.claim_candidates('app')")
		for _, view := range views {
			mayNot("select * from backfill." + view)
		}
		mayNot("delete from backfill.intake")
		mayNot("select backfill.wake('heuristic')")
		require.Equal(t, []string{"execute backfill.size", "insert backfill.intake", "select backfill.intake"}, granted("backfill_app"))
	})
	t.Run("memory", func(t *testing.T) {
		may, mayNot := as(t, "backfill_memory")
		may("select content, candidate from backfill.v_candidate")
		may("select * from backfill.claim_candidates('memory', 10)")
		claim := query[int64](b, "select claim from backfill.extraction where capture_id = 1")
		may("select backfill.release($1)", claim)
		may("select * from backfill.claim_candidates('memory', 10)")
		claim = query[int64](b, "select claim from backfill.extraction where capture_id = 1")
		may("select backfill.ack_candidates($1)", claim)
		require.True(t, query[bool](b, "select handed_over from backfill.v_candidate where capture_id = 1"))
		mayNot("select id from backfill.intake")
		mayNot("insert into backfill.intake (source, text) values ('memory', 'x')")
		mayNot("select * from backfill.v_status")
		mayNot("select * from backfill.staging")
		require.Equal(t, []string{
			"execute backfill.ack_candidates", "execute backfill.claim_candidates", "execute backfill.release", "execute backfill.size",
			"select backfill.v_candidate",
		}, granted("backfill_memory"))
	})
	t.Run("reader", func(t *testing.T) {
		may, mayNot := as(t, "backfill_reader")
		for _, view := range views {
			may("select * from backfill." + view)
		}
		mayNot("select id from backfill.intake")
		mayNot("insert into backfill.intake (source, text) values ('reader', 'x')")
		mayNot("select * from backfill.claim_candidates('reader')")
		mayNot("select backfill.ack_candidates(1)")
		mayNot("select * from river.river_job")
		require.Equal(t, []string{
			"execute backfill.size",
			"select backfill.v_batch", "select backfill.v_candidate", "select backfill.v_cost", "select backfill.v_entity", "select backfill.v_failure",
			"select backfill.v_nightly", "select backfill.v_run", "select backfill.v_status", "select backfill.v_status_exact",
		}, granted("backfill_reader"))
	})
}
