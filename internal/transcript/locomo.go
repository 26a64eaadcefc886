package transcript

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// locomo is the LoCoMo benchmark, for measurements: conversations between two people
// over many sessions, each dated as a whole. It is a list of samples, or one
// conversation without a sample id. Questions and summaries are no turns.
var locomo = format{
	name: "locomo",
	match: func(keys members) bool {
		return has(keys, "sample_id", "conversation") || has(keys, "speaker_a", "speaker_b")
	},
	read: func(f *file) {
		for rec := range f.records {
			if v, ok := f.object(rec); ok {
				f.locomoSample(v, rec.line)
			}
		}
	},
}

func (f *file) locomoSample(v value, line int) {
	sample := v.member("sample_id").id()
	if v.member("conversation").given() {
		v = v.member("conversation")
	}
	if sample == "" {
		sample = contentID(v.member("speaker_a").text(), v.member("speaker_b").text(), v.member("session_1_date_time").text())
	}
	sessions, dates := map[int]value{}, map[string]string{}
	for key, m := range v.members {
		if n, err := strconv.Atoi(strings.TrimPrefix(string(key), "session_")); err == nil {
			sessions[n] = m
		} else {
			dates[string(key)] = m.text()
		}
	}
	c := f.conversation(sample)
	for _, n := range slices.Sorted(maps.Keys(sessions)) {
		// Unknown where it does not parse.
		date, _ := time.Parse("3:04 pm on 2 January, 2006", strings.TrimSpace(dates[fmt.Sprintf("session_%d_date_time", n)]))
		for m := range sessions[n].elements {
			c.add(Turn{
				ExternalID: sample + "/" + m.member("dia_id").text(),
				Role:       RoleOther,
				Speaker:    m.member("speaker").text(),
				Text:       m.member("text").text(),
				Date:       date,
			}, line)
			c.note("caption", m.member("blip_caption").text())
		}
	}
	c.end()
}
