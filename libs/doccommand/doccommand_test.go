package doccommand

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWords(t *testing.T) {
	t.Parallel()
	got := Words(`chandler prune x --keep 'a:b@>=1.1.0' -o "c d" > out.yaml   # 'what' it says`)
	want := []string{"chandler", "prune", "x", "--keep", "a:b@>=1.1.0", "-o", "c d", ">", "out.yaml"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestDocument(t *testing.T) {
	t.Parallel()
	text := "Say `chandler get KIND`.\n```sh\nchandler a b >> c # why\nls `chandler x`\n```\n```yaml\nchandler: " +
		"x\n```\n`chandler d`\n"
	if diff := cmp.Diff([]Command{{Place: "f:3", Words: []string{"a", "b"}, Into: "c", Appends: true}},
		Blocks("f", text, "chandler")); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]Command{{Place: "f:1", Words: []string{"get", "KIND"}}, {Place: "f:9", Words: []string{"d"}}},
		Spans("f", text, "chandler")); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff("chandler a b >> c # why\nls `chandler x`\n", Script(text)); diff != "" {
		t.Error(diff)
	}
	examples := Examples("x", "  chandler keys --secret s | kubectl apply -f -\n  cat a | chandler apply -f - < b\n",
		"chandler")
	if diff := cmp.Diff([]Command{
		{Place: "x", Words: []string{"keys", "--secret", "s"}},
		{Place: "x", Words: []string{"apply", "-f", "-"}},
	}, examples); diff != "" {
		t.Error(diff)
	}
}
