package transcript

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestValue(t *testing.T) {
	t.Parallel()

	v := value(" { \"a\" : \"x\\\"\\\\\" ,\n\"\\u0062\":[1 ,-2.5e3,{\"c\":[]} , true,null,\"]\"], \"a\":\"last \\ud800\xff\", \"e\":{}} ")
	v = v[1 : len(v)-1]
	var keys []string
	for key, m := range v.members {
		keys = append(keys, string(key)+"="+string(m))
	}
	require.Equal(t, []string{`a="x\"\\"`, `b=[1 ,-2.5e3,{"c":[]} , true,null,"]"]`, "a=\"last \\ud800\xff\"", "e={}"}, keys)
	require.Equal(t, "last \uFFFD\uFFFD", v.member("a").text())
	var elements []string
	for e := range v.member("b").elements {
		elements = append(elements, string(e))
	}
	require.Equal(t, []string{"1", "-2.5e3", `{"c":[]}`, "true", "null", `"]"`}, elements)

	// Of another kind, or none.
	for _, v := range []value{nil, value("null"), value("7"), value(`"x"`), value("[]"), value("{}"), value("[ ]"), value("{ }")} {
		for range v.members {
			require.Fail(t, "a member", string(v))
		}
		for range v.elements {
			require.Fail(t, "an element", string(v))
		}
		require.Nil(t, v.member("a").member("b"))
	}
	require.Equal(t, []string{"7", "x", ""}, []string{value("7").id(), value(`"x"`).id(), value("{}").id()})
	require.False(t, value("null").given())
	require.False(t, value(nil).given())
	require.True(t, value("{}").given())
}

// TestValueStops breaks off in the middle.
func TestValueStops(t *testing.T) {
	t.Parallel()

	for range value(`{"a":1,"b":2}`).members {
		break
	}
	for range value(`[1,2]`).elements {
		break
	}
}

// FuzzValue compares the walk with encoding/json.
func FuzzValue(f *testing.F) {
	f.Add(`{"a":[1,"\"\\",{"b":null}],"a":{},"c":" \ud83d\ude00\u0000"}`)
	f.Add("[ [ ] , { } ,\t-0.5 ]")
	f.Add("{\"\xff\xff\":\"\xff\xff\"}")
	f.Fuzz(func(t *testing.T, in string) {
		in = strings.Trim(in, " \t\r\n")
		if !json.Valid([]byte(in)) {
			return
		}
		var want any
		d := json.NewDecoder(strings.NewReader(in))
		d.UseNumber()
		require.NoError(t, d.Decode(&want))
		require.Equal(t, want, rebuild(value(in)))
	})
}

func rebuild(v value) any {
	switch v.kind() {
	case '{':
		m := map[string]any{}
		for key, member := range v.members {
			m[string(key)] = rebuild(member)
		}
		return m
	case '[':
		list := []any{}
		for element := range v.elements {
			list = append(list, rebuild(element))
		}
		return list
	case '"':
		return v.text()
	case 't', 'f':
		return v.isTrue()
	case 'n':
		return nil
	default:
		return json.Number(v)
	}
}
