package watch

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A cluster that has objects without end, in pages or one by one, does not fill the memory of who watches it; those
// that are known are followed on.
func TestObjectsWithoutEnd(t *testing.T) {
	t.Parallel()
	told := 0
	s := newStore(Kind{Resource: "configmaps"}, func(Change) { told++ })
	s.most = 10
	var err error
	pages := 0
	for ; err == nil && pages < 100; pages++ {
		err = s.within(pages > 0, 3)
	}
	if err == nil || pages != 4 {
		t.Errorf("%d pages of three were read: %v", pages, err)
	}
	if err := s.within(false, 10); err != nil {
		t.Errorf("a list of ten that begins anew: %v", err)
	}
	for i := range 50 {
		if err := (sink{s}).Add(&metav1.PartialObjectMetadata{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint(i), Generation: 1},
		}); err != nil {
			t.Fatal(err)
		}
	}
	if err := (sink{s}).Update(&metav1.PartialObjectMetadata{
		ObjectMeta: metav1.ObjectMeta{Name: "3", Generation: 2},
	}); err != nil {
		t.Fatal(err)
	}
	if len(s.entries) != 10 || told != 11 {
		t.Errorf("%d objects are remembered, and %d changes told", len(s.entries), told)
	}
}
