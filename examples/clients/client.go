// Calls a plan, then builds a dataset and follows its events: go run client.go ADDRESS TOKEN_FILE
package main

import ("bufio"; "encoding/json"; "fmt"; "io"; "log"; "net/http"; "os"; "strings")

func must[T any](value T, err error) T { if err != nil { log.Fatal(err) }; return value }

func call(method, path, body string) io.Reader {
	request := must(http.NewRequest(method, os.Args[1]+path, strings.NewReader(body)))
	request.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(must(os.ReadFile(os.Args[2])))))
	request.Header.Set("Content-Type", "application/json")
	answer := must(http.DefaultClient.Do(request))
	if answer.StatusCode >= 300 { log.Fatal(path, ": ", answer.Status, " ", string(must(io.ReadAll(answer.Body)))) }
	return answer.Body
}

func main() {
	var answer struct{ Candidates []struct{ ID int64 }; Run string }
	must(0, json.NewDecoder(call("POST", "/v1/plans/feed/run", `{"user_id": 7}`)).Decode(&answer))
	fmt.Print("posts:")
	for _, row := range answer.Candidates { fmt.Print(" ", row.ID) }
	topic := `{"name": "topic", "column_type": "sampler", "sampler_type": "category", "params": {"values": ["tea", "rivers"]}}`
	must(0, json.NewDecoder(call("POST", "/v1/datasets", `{"config": {"columns": [`+topic+`]}, "rows": 100, "demo": true}`)).Decode(&answer))
	events := bufio.NewReader(call("GET", "/v1/runs/"+answer.Run+"/events", ""))
	for line, err := events.ReadString('\n'); err != io.EOF; line, err = events.ReadString('\n') {
		if strings.HasPrefix(must(line, err), "event:") { fmt.Print("\n", strings.TrimSpace(line)) }
	}
}
