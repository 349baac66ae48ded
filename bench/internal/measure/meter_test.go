package measure

import (
	"slices"
	"testing"
	"time"
)

func TestAMeterCountsWhileItsWindowIsOpen(t *testing.T) {
	var m Meter
	one, other := m.Worker(), m.Worker()
	one.Did(3)
	m.Took(time.Second)
	m.Open()
	one.Did(2)
	m.Took(time.Millisecond)
	m.Close()
	other.Did(1)
	m.Took(time.Second)
	m.Set("own", 7)

	part := m.Part()
	if want := []int64{2, 0}; !slices.Equal(part.Done, want) {
		t.Errorf("done: %v, want %v", part.Done, want)
	}
	if got := Quantile(part.Durations, 1); len(part.Durations) != 1 || got > 2*time.Millisecond {
		t.Errorf("durations: %v", part.Durations)
	}
	if part.Figures["own"] != 7 {
		t.Errorf("figures: %v", part.Figures)
	}
}

func TestABystanderUsesNothing(t *testing.T) {
	var m Meter
	m.Bystander()
	m.Open()
	m.Close()
	if used := m.Part().Usage; used != (Usage{}) {
		t.Errorf("usage: %+v", used)
	}
}

func TestCommandsAreThoseThatClientsSent(t *testing.T) {
	const info = "# Commandstats\r\n" +
		"cmdstat_evalsha:calls=10,usec=99,usec_per_call=9.90,rejected_calls=0,failed_calls=0\r\n" +
		"cmdstat_set:calls=7,usec=1,usec_per_call=0.14,rejected_calls=0,failed_calls=0\r\n" +
		"cmdstat_ping:calls=2,usec=1,usec_per_call=0.50,rejected_calls=0,failed_calls=0\r\n"
	if got := commands(info, nil); got != 12 {
		t.Errorf("of one who sends scripts: %v commands, want 12", got)
	}
	if got := commands(info, []string{"set"}); got != 19 {
		t.Errorf("of one who sends SET too: %v commands, want 19", got)
	}
}
