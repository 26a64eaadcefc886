package transcript

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFollow(t *testing.T) {
	t.Parallel()

	tests := []struct {
		name string
		// links are "id<parent@day", "-" for no parent.
		links, leaf, want string
		circle, broken    bool
	}{
		{"in order", "a<-@1 b<a@2 c<b@3", "", "abc", false, false},
		{"in any order", "c<b@3 a<-@1 b<a@2", "", "abc", false, false},
		{"marked leaf", "a<-@1 b<a@2 c<a@3", "b", "ab", false, false},
		{"leaf that is missing", "a<-@1 b<a@3 c<a@2", "x", "ab", false, false},
		{"of the same date the last", "a<-@1 b<a@2 c<a@2", "", "ac", false, false},
		{"two roots", "a<-@1 b<a@2 c<-@3", "", "c", false, false},
		{"two in a circle", "a<b@1 b<a@2", "", "ab", true, false},
		{"follows itself", "a<a@1", "", "a", true, false},
		{"broken", "a<-@1 b<a@2 c<x@3 d<c@4", "", "abcd", false, true},
		{"broken twice", "a<-@1 b<x@2 c<y@3", "", "abc", false, true},
		{"broken beside a branch", "a<-@1 b<a@2 c<a@3 d<x@4", "", "acd", false, true},
		{"what came later is not before", "a<-@1 b<x@2 c<a@3", "b", "b", false, true},
		{"broken at the top", "b<x@2 c<b@3", "", "bc", false, true},
		{"a circle before", "a<b@1 b<a@2 c<x@3 d<-@1", "", "dc", false, true},
		{"nothing but a circle before", "b<a@2 a<b@1 c<x@3", "c", "c", false, true},
	}
	for _, tt := range tests {
		var links []link
		for word := range strings.FieldsSeq(tt.links) {
			id, rest, _ := strings.Cut(word, "<")
			parent, d, _ := strings.Cut(rest, "@")
			links = append(links, link{id: id, parent: parent, root: parent == "-", date: day(2026, 1, int(d[0]-'0'))})
		}
		var th thread
		var got strings.Builder
		for _, i := range th.follow(links, tt.leaf) {
			got.WriteString(links[i].id)
		}
		require.Equal(t, tt.want, got.String(), tt.name)
		require.Equal(t, []bool{tt.circle, tt.broken}, []bool{th.circle, th.broken}, tt.name)
	}
}
