package migrations_test

import (
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/justfortytwo/backfill/internal/pgtest"
	"github.com/justfortytwo/backfill/migrations"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// schema describes everything in our schemas: relations and their columns,
// indexes, constraints, triggers, functions and views.
func schema(t *testing.T, pool *pgxpool.Pool) []string {
	t.Helper()
	rows, err := pool.Query(t.Context(), `
		with n as (select oid, nspname from pg_namespace where nspname in ('backfill', 'river'))
		select 'column ' || c.oid::regclass || '.' || a.attname || ' ' || format_type(a.atttypid, a.atttypmod)
		       || ' ' || a.attnotnull || ' ' || coalesce(pg_get_expr(d.adbin, d.adrelid), '')
		from pg_class c join n on n.oid = c.relnamespace join pg_attribute a on a.attrelid = c.oid
		left join pg_attrdef d on d.adrelid = c.oid and d.adnum = a.attnum
		where a.attnum > 0 and not a.attisdropped and c.relkind in ('r', 'v', 'S')
		union all select 'options ' || c.oid::regclass || ' ' || c.reloptions::text from pg_class c join n on n.oid = c.relnamespace where c.reloptions is not null
		union all select 'index ' || pg_get_indexdef(i.indexrelid) from pg_index i join pg_class c on c.oid = i.indexrelid join n on n.oid = c.relnamespace
		union all select 'constraint ' || x.conrelid::regclass || ' ' || x.conname || ' ' || pg_get_constraintdef(x.oid) from pg_constraint x join n on n.oid = x.connamespace where x.conrelid <> 0
		union all select 'trigger ' || pg_get_triggerdef(t.oid) from pg_trigger t join pg_class c on c.oid = t.tgrelid join n on n.oid = c.relnamespace where not t.tgisinternal
		union all select 'function ' || pg_get_functiondef(p.oid) || ' ' || coalesce(p.proacl::text, '') from pg_proc p join n on n.oid = p.pronamespace
		union all select 'view ' || pg_get_viewdef(c.oid) from pg_class c join n on n.oid = c.relnamespace where c.relkind = 'v'
		union all select 'row ' || e::text from backfill.extractor e
		order by 1`)
	require.NoError(t, err)
	all, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	return all
}

func TestUp(t *testing.T) {
	t.Parallel()

	t.Run("ConcurrentCallersTakeTurns", func(t *testing.T) {
		t.Parallel()
		pool := pgtest.Empty(t)
		url := pool.Config().ConnString()
		var wg sync.WaitGroup
		errs := make(chan error, 5)
		for range 5 {
			wg.Go(func() {
				// A pool each, as processes have.
				pool, err := pgxpool.New(t.Context(), url)
				if err == nil {
					defer pool.Close()
					err = migrations.Up(t.Context(), pool, migrations.Extractor{Name: "heuristic", Version: "7"})
				}
				errs <- err
			})
		}
		wg.Wait()
		close(errs)
		for err := range errs {
			require.NoError(t, err)
		}
		all, err := migrations.Status(t.Context(), pool)
		require.NoError(t, err)
		require.Zero(t, migrations.Pending(all))
	})

	t.Run("SamePoolTooSmall", func(t *testing.T) {
		t.Parallel()
		cfg := pgtest.Empty(t).Config()
		cfg.MaxConns = 2
		pool, err := pgxpool.NewWithConfig(t.Context(), cfg)
		require.NoError(t, err)
		defer pool.Close()
		require.ErrorContains(t, migrations.Up(t.Context(), pool), "pool_max_conns")
	})
}

func TestDown(t *testing.T) {
	t.Parallel()
	pool := pgtest.Empty(t)
	ctx := t.Context()

	all, err := migrations.Status(ctx, pool)
	require.NoError(t, err)
	require.Equal(t, len(all), migrations.Pending(all), "status of an empty database")

	require.NoError(t, migrations.Up(ctx, pool))
	before := schema(t, pool)
	require.Greater(t, len(before), 200)

	// One by one, with the one just rolled back applied again in between: each
	// Down undoes exactly its Up.
	ours := 0
	for {
		_, err := migrations.Down(ctx, pool)
		if err != nil {
			require.ErrorIs(t, err, migrations.ErrNothingToRollBack)
			break
		}
		ours++
		require.NoError(t, migrations.Up(ctx, pool))
		require.Equal(t, before, schema(t, pool))
		for range ours {
			_, err := migrations.Down(ctx, pool)
			require.NoError(t, err)
		}
	}
	require.Equal(t, 5, ours)

	require.NoError(t, migrations.Up(ctx, pool))
	require.Equal(t, before, schema(t, pool))

	require.NoError(t, migrations.Reset(ctx, pool))
	var left int
	require.NoError(t, pool.QueryRow(ctx, "select count(*) from pg_namespace where nspname in ('backfill', 'river')").Scan(&left))
	require.Zero(t, left)
	require.NoError(t, migrations.Up(ctx, pool))
	require.Equal(t, before, schema(t, pool))
}

func TestNewerSchema(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	_, err := pool.Exec(t.Context(), "insert into backfill.schema_migrations (version_id, is_applied) values (999, true)")
	require.NoError(t, err)
	require.ErrorIs(t, migrations.Up(t.Context(), pool), migrations.ErrNewerSchema)
	_, err = migrations.Status(t.Context(), pool)
	require.ErrorIs(t, err, migrations.ErrNewerSchema)
}

func TestRegister(t *testing.T) {
	t.Parallel()
	pool := pgtest.Empty(t)
	ctx := t.Context()
	register := func(version string) (current, batch string) {
		require.NoError(t, migrations.Up(ctx, pool, migrations.Extractor{Name: "heuristic", Version: version}))
		require.NoError(t, pool.QueryRow(ctx, "select version from backfill.extractor where name = 'heuristic'").Scan(&current))
		require.NoError(t, pool.QueryRow(ctx, "select coalesce(min(version), '') from backfill.batch").Scan(&batch))
		return current, batch
	}
	current, _ := register("1")
	require.Equal(t, "1", current)
	_, err := pool.Exec(ctx, "insert into backfill.intake (source, text) values ('test', 'x')")
	require.NoError(t, err)

	current, batch := register("2")
	require.Equal(t, "2", current)
	require.Equal(t, "2", batch, "open batches follow")

	current, batch = register("1")
	require.Equal(t, "2", current, "an old binary does not turn time back")
	require.Equal(t, "2", batch)

	require.ErrorContains(t, migrations.Up(ctx, pool, migrations.Extractor{Name: "nobody", Version: "1"}), "nobody")
}
