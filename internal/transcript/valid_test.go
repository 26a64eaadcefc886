package transcript

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var validity = []string{
	"", " ", "{}", " [ ] ", `{"a":1}`, `{ "a" : [ 1 , true , false , null , "x" ] , "b" : { } }`, `{"a":1}{}`, "[1 2]", "[1,]", "[,1]", `{"a":1,}`, `{"a"}`,
	`{"a":}`, `{a:1}`, `{1:1}`, `{"a":1]`, "[1}", "[", "{", `{"a"`, `{"a":`, `{"a":1`, "[1", "[1,", "]", ",",
	`"`, `"a`, `"\`, `"\u`, `"\"`, `"\u12"`, `"\u12g4"`, `"\u12aF"`, `"\x"`, `"\"\\\/\b\f\n\r\t"`, "\"\t\"", "\"\x00\"", "\"\x1f\"", "\"\x7f\xff\"",
	"0", "-0", "-", "01", "-01", "10", "1.", ".5", "1.5", "1e", "1e+", "1E-07", "1.5e5x", "+1", "1-", "0x1", "0e0", "-a",
	"true", "tru", "truex", "false", "fals", "null", "nul", "nullnull", "x", "\x00", "{\x00}", "\v1", "\ufeff1",
	strings.Repeat("[", maxDepth) + strings.Repeat("]", maxDepth),
	strings.Repeat("[", maxDepth+1) + strings.Repeat("]", maxDepth+1),
	strings.Repeat(`{"a":`, maxDepth) + "1" + strings.Repeat("}", maxDepth),
	strings.Repeat(`{"a":`, maxDepth+1) + "1" + strings.Repeat("}", maxDepth+1),
}

func TestValid(t *testing.T) {
	t.Parallel()

	for _, in := range validity {
		require.Equal(t, json.Valid([]byte(in)), valid([]byte(in)), "%.100q", in)
	}
}

// FuzzValid compares valid with encoding/json.
func FuzzValid(f *testing.F) {
	for _, in := range validity {
		f.Add([]byte(in))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		require.Equal(t, json.Valid(in), valid(in))
	})
}
