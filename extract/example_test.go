package extract_test

import (
	"context"
	"fmt"

	"github.com/justfortytwo/backfill/extract"
)

func ExampleParse() {
	raw := "Sure, here it is:\n```json\n" +
		`{"memories": [{"content": "The team ships on Fridays", "salience": 0.9}, {"content": "The deploy scr`
	turn := extract.Turn{Text: "we ship on Fridays", Source: "owner", Observed: extract.ObservedStated}

	cands, report := extract.Parse(raw, turn, extract.Options{})
	for _, c := range cands {
		fmt.Println(c.Salience, c.Content, "/", c.Source, c.Observed)
	}
	fmt.Println(report.Outcome, "salvaged:", report.Salvaged)
	// Output:
	// 0.9 The team ships on Fridays / owner stated
	// ok salvaged: true
}

// cannedModel stands in for a model.
type cannedModel struct{ answer string }

func (m cannedModel) Complete(context.Context, extract.Request) (extract.Completion, error) {
	return extract.Completion{Text: m.answer, Finish: extract.FinishStop}, nil
}

func ExampleNew() {
	model := cannedModel{`{"memories": [
		{"content": "The team ships on Fridays", "salience": 0.9, "tags": ["decision"], "evidence": "we ship on Fridays"},
		{"content": "The team likes boats", "salience": 0.8, "tags": ["preference"], "evidence": "we love boats"}]}`}
	turn := extract.Turn{Text: "The deploy script lives at scripts/deploy.sh; we ship on Fridays."}

	cands, err := extract.New(model).ExtractSalient(context.Background(), turn, extract.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, c := range cands {
		fmt.Println(c.Salience, c.Kind, c.Content, c.Meta)
	}
	// Output:
	// 0.9 decision The team ships on Fridays map[]
	// 0.4 preference The team likes boats map[ungrounded:true]
}

// promptPrinter shows what a model would be told.
type promptPrinter struct{}

func (promptPrinter) Complete(_ context.Context, r extract.Request) (extract.Completion, error) {
	fmt.Println(r.System)
	return extract.Completion{Text: "[]"}, nil
}

func ExampleWithSystemPrompt() {
	e := extract.New(promptPrinter{}, extract.WithSystemPrompt("Record allergies only. Answer with a JSON array."))

	r, err := e.Extract(context.Background(), extract.Turn{Text: "No peanuts for me."}, extract.Options{})
	fmt.Println(len(r.Candidates), r.Report.Outcome, err)
	// Output:
	// Record allergies only. Answer with a JSON array.
	// 0 empty <nil>
}
