// Package config is the environment both programs read, checked and turned into
// what the packages take.
package config

import (
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"strings"
	"time"

	"github.com/caarlos0/env/v11"
	"github.com/robfig/cron/v3"

	"github.com/justfortytwo/backfill/extract"
	"github.com/justfortytwo/backfill/extract/llm"
	"github.com/justfortytwo/backfill/heuristic"
	"github.com/justfortytwo/backfill/jobs"
	"github.com/justfortytwo/backfill/migrations"
	"github.com/justfortytwo/backfill/store"
)

// Config is the environment. Flags beat it, and it beats the defaults.
type Config struct {
	// DatabaseURL is a Postgres URL. Empty: the PG* variables.
	DatabaseURL string `env:"DATABASE_URL"`
	// StatementTimeout bounds one statement; -1s disables it.
	StatementTimeout time.Duration `env:"BACKFILL_STATEMENT_TIMEOUT" envDefault:"5m"`
	// Workers is the number of drains at once per extractor, one of them kept for
	// live turns. 0: one more than GOMAXPROCS.
	Workers int `env:"BACKFILL_WORKERS" envDefault:"0"`
	// Lease is how long work rests after a worker vanished.
	Lease time.Duration `env:"BACKFILL_LEASE" envDefault:"20s"`
	// MaxAttempts is the attempt after which a capture is dead.
	MaxAttempts int16 `env:"BACKFILL_MAX_ATTEMPTS" envDefault:"5"`
	// ClassifyMaxChars is the longest free-form capture, in runes, that is
	// classified as a whole where no sentence of it is a memory by itself; 0 or
	// less classifies none.
	ClassifyMaxChars int `env:"BACKFILL_CLASSIFY_MAX_CHARS" envDefault:"400"`
	// MinSalience drops candidates below it.
	MinSalience float64 `env:"BACKFILL_MIN_SALIENCE" envDefault:"0"`
	// Nightly is when the reconciler runs, in cron's five fields; "off" disables
	// it.
	Nightly string `env:"BACKFILL_NIGHTLY" envDefault:"0 3 * * *"`
	// TimeZone is the IANA name of the zone that Nightly is in. Empty: the
	// machine's.
	TimeZone string `env:"BACKFILL_TIME_ZONE"`
	// HoldTransaction, HoldReplicaLag, HoldAutovacuum and HoldSQL say when backfills
	// give way to the database: see store.Thresholds.
	HoldTransaction time.Duration `env:"BACKFILL_HOLD_TRANSACTION" envDefault:"0s"`
	HoldReplicaLag  time.Duration `env:"BACKFILL_HOLD_REPLICA_LAG" envDefault:"30s"`
	HoldAutovacuum  bool          `env:"BACKFILL_HOLD_AUTOVACUUM"`
	HoldSQL         string        `env:"BACKFILL_HOLD_SQL"`
	// PollOnly does without LISTEN, for proxies that pool transactions.
	PollOnly bool `env:"BACKFILL_POLL_ONLY"`
	// HTTPAddr is where the daemon serves health, metrics and River's UI; "off"
	// serves nothing.
	HTTPAddr string `env:"BACKFILL_HTTP_ADDR" envDefault:"127.0.0.1:8080"`
	// HTTPAddrSet reports that HTTPAddr was given: it being taken is an error
	// then, else a warning.
	HTTPAddrSet bool `env:"-"`
	// LogLevel is debug, info, warn or error; LogFormat is json or text.
	LogLevel  slog.Level `env:"BACKFILL_LOG_LEVEL" envDefault:"info"`
	LogFormat string     `env:"BACKFILL_LOG_FORMAT" envDefault:"json"`

	LLM LLM
}

// Load reads the environment as os.Environ gives it.
func Load(environ []string) (Config, error) {
	vars := env.ToMap(environ)
	delete(vars, "") // Windows has such; it would be taken for LLM, which has no name
	var c Config
	if err := env.ParseWithOptions(&c, env.Options{Environment: vars}); err != nil {
		return c, fmt.Errorf("reading the environment: %w", readable(err))
	}
	c.HTTPAddrSet = vars["BACKFILL_HTTP_ADDR"] != ""
	return c, c.Validate()
}

// Validate checks every setting and names the first that is wrong.
func (c Config) Validate() error {
	if err := heuristic.ValidateClassifyMaxChars(c.ClassifyMaxChars); err != nil {
		return fmt.Errorf("BACKFILL_CLASSIFY_MAX_CHARS: %w", err)
	}
	switch {
	case c.Workers < 0 || c.Workers == 1:
		return fmt.Errorf("BACKFILL_WORKERS is %d: use at least 2, one of which is kept for live turns, or 0 for the default", c.Workers)
	case c.Lease < time.Second:
		return fmt.Errorf("BACKFILL_LEASE is %s: use at least 1s", c.Lease)
	case c.StatementTimeout < time.Second && c.StatementTimeout != -time.Second:
		return fmt.Errorf("BACKFILL_STATEMENT_TIMEOUT is %s: use at least 1s, or -1s for none", c.StatementTimeout)
	case c.Workers > 1000:
		return fmt.Errorf("BACKFILL_WORKERS is %d: use at most 1000", c.Workers)
	case c.HoldTransaction < 0 || c.HoldReplicaLag < 0:
		return errors.New("BACKFILL_HOLD_TRANSACTION and BACKFILL_HOLD_REPLICA_LAG must not be negative: use 0s to hold nothing")
	case c.MaxAttempts < 1:
		return fmt.Errorf("BACKFILL_MAX_ATTEMPTS is %d: use at least 1", c.MaxAttempts)
	case !(c.MinSalience >= 0 && c.MinSalience <= 1): // so that NaN is none either
		return fmt.Errorf("BACKFILL_MIN_SALIENCE is %v: use a number from 0 to 1", c.MinSalience)
	case c.LogFormat != "json" && c.LogFormat != "text":
		return fmt.Errorf("BACKFILL_LOG_FORMAT is %q: use json or text", c.LogFormat)
	}
	if _, err := c.schedule(); err != nil {
		return err
	}
	if _, err := c.Location(); err != nil {
		return err
	}
	return c.LLM.validate()
}

func (c Config) schedule() (cron.Schedule, error) {
	if c.Nightly == "off" {
		return nil, nil //nolint:nilnil // no schedule is a valid one
	}
	s, err := cron.ParseStandard(c.Nightly)
	if err != nil || strings.Contains(c.Nightly, "TZ=") { // a zone has a variable of its own
		return nil, fmt.Errorf("BACKFILL_NIGHTLY is %q: use cron's five fields, such as \"0 3 * * *\", or off", c.Nightly)
	}
	if s.Next(time.Now()).IsZero() {
		return nil, fmt.Errorf("BACKFILL_NIGHTLY is %q: there is no such day; use off to disable it", c.Nightly)
	}
	return s, nil
}

// Location is the time zone of the nightly.
func (c Config) Location() (*time.Location, error) {
	if c.TimeZone == "" {
		return time.Local, nil
	}
	l, err := time.LoadLocation(c.TimeZone)
	if err != nil {
		return nil, fmt.Errorf("BACKFILL_TIME_ZONE is %q: use an IANA name such as Europe/Berlin", c.TimeZone)
	}
	return l, nil
}

// Extractors are the versions this build registers when it migrates.
func (c Config) Extractors() []migrations.Extractor {
	out := []migrations.Extractor{{Name: "heuristic", Version: heuristic.Version}}
	if c.LLM.Model != "" {
		out = append(out, c.LLM.extractor())
	}
	return out
}

// Heuristic is the extractor that needs no model.
func (c Config) Heuristic() (*heuristic.Extractor, error) {
	e, err := heuristic.New(heuristic.WithClassifyMaxChars(c.ClassifyMaxChars))
	if err != nil {
		return nil, fmt.Errorf("BACKFILL_CLASSIFY_MAX_CHARS: %w", err)
	}
	return e, nil
}

// Options are the filters every extractor applies.
func (c Config) Options() extract.Options {
	return extract.Options{MinSalience: c.MinSalience}
}

// Jobs configures a client of package jobs.
func (c Config) Jobs(log *slog.Logger) (jobs.Config, error) {
	nightly, err := c.schedule()
	if err != nil {
		return jobs.Config{}, err
	}
	location, err := c.Location()
	if err != nil {
		return jobs.Config{}, err
	}
	h, err := c.Heuristic()
	if err != nil {
		return jobs.Config{}, err
	}
	slots := []jobs.Slot{{ID: 1, Name: "heuristic", Version: heuristic.Version, Extractor: h, Options: c.Options()}}
	if c.LLM.Model != "" {
		slot, err := c.llmSlot()
		if err != nil {
			return jobs.Config{}, err
		}
		slots = append(slots, slot)
	}
	return jobs.Config{
		Slots:       slots,
		Workers:     c.Workers,
		Lease:       c.Lease,
		MaxAttempts: c.MaxAttempts,
		Nightly:     nightly,
		Location:    location,
		PollOnly:    c.PollOnly,
		Hold: store.Thresholds{
			Transaction: c.HoldTransaction, ReplicaLag: c.HoldReplicaLag, Autovacuum: c.HoldAutovacuum, SQL: c.HoldSQL,
		},
		Logger: log,
	}, nil
}

// readable names the variable and leaves out Go's types.
func readable(err error) error {
	var all env.AggregateError
	if !errors.As(err, &all) || len(all.Errors) == 0 {
		return err
	}
	if parse, ok := errors.AsType[env.ParseError](all.Errors[0]); ok {
		if parse.Type == reflect.TypeFor[llm.Prices]() {
			return fmt.Errorf("BACKFILL_LLM_PRICES: %w", parse.Err)
		}
		return fmt.Errorf("%s has a wrong value: use %s", variable(parse.Name), expects(parse.Type))
	}
	return all.Errors[0]
}

// expects says what a variable of this type takes.
func expects(t reflect.Type) string {
	switch t {
	case reflect.TypeFor[time.Duration]():
		return "a duration such as 20s or 5m"
	case reflect.TypeFor[slog.Level]():
		return "debug, info, warn or error"
	}
	switch t.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.Float32, reflect.Float64:
		return "a number"
	default:
		return "a whole number"
	}
}

// variable is the environment variable of a field.
func variable(field string) string {
	for _, t := range []reflect.Type{reflect.TypeFor[Config](), reflect.TypeFor[LLM]()} {
		if f, ok := t.FieldByName(field); ok {
			return f.Tag.Get("env")
		}
	}
	return field
}
