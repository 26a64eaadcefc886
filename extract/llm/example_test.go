package llm_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/justfortytwo/backfill/extract"
	"github.com/justfortytwo/backfill/extract/llm"
)

func ExampleExtractor() {
	endpoint := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"choices":[{"finish_reason":"stop","message":{"role":"assistant",
			"content":"{\"memories\":[{\"content\":\"The team ships on Fridays.\",\"salience\":0.9,\"tags\":[\"decision\"]}]}"}}]}`)
	}))
	defer endpoint.Close()

	client, err := llm.New(llm.Config{BaseURL: endpoint.URL + "/v1", Model: "qwen3:8b"})
	if err != nil {
		fmt.Println(err)
		return
	}
	turn := extract.Turn{Text: "User: from now on we ship on Fridays", Source: "owner"}
	found, err := llm.NewExtractor(client).ExtractSalient(context.Background(), turn, extract.Options{})
	switch llm.KindOf(err) {
	case llm.RetryLater, llm.StopQueue:
		fmt.Println("not now:", err)
	default:
		for _, c := range found {
			fmt.Printf("%.1f %s: %s\n", c.Salience, c.Kind, c.Content)
		}
	}
	// Output: 0.9 decision: The team ships on Fridays.
}

func ExamplePrices() {
	var prices llm.Prices
	if err := prices.UnmarshalText([]byte("gpt-5-mini=0.25/0.025/2")); err != nil {
		fmt.Println(err)
		return
	}
	cost := prices.Cost("gpt-5-mini", extract.Usage{PromptTokens: new(1200), CompletionTokens: new(80)})
	fmt.Println(*cost, "millionths of a dollar")
	fmt.Println("unknown:", prices.Cost("another", extract.Usage{}) == nil)
	// Output:
	// 460 millionths of a dollar
	// unknown: true
}
