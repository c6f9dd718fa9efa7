// Calls a plan, then builds a dataset and follows its events: go run client.go ADDRESS TOKEN_FILE
package main

import ("bufio"; "bytes"; "encoding/json"; "fmt"; "log"; "net/http"; "os"; "strings")

func call(method, path, body string) *http.Response {
	token, err := os.ReadFile(os.Args[2])
	if err != nil { log.Fatal(err) }
	request, _ := http.NewRequest(method, os.Args[1]+path, bytes.NewBufferString(body))
	request.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	request.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(request)
	if err != nil { log.Fatal(err) }
	if answer.StatusCode >= 300 { log.Fatal(path, ": ", answer.Status) }
	return answer
}

func main() {
	var answer struct{ Candidates []struct{ ID int64 } }
	json.NewDecoder(call("POST", "/v1/plans/feed/run", `{"user_id": 7}`).Body).Decode(&answer)
	fmt.Print("posts:")
	for _, row := range answer.Candidates { fmt.Print(" ", row.ID) }
	fmt.Println()

	var job struct{ Run string }
	topic := `{"name": "topic", "column_type": "sampler", "sampler_type": "category", "params": {"values": ["tea", "rivers"]}}`
	json.NewDecoder(call("POST", "/v1/datasets", `{"config": {"columns": [`+topic+`]}, "rows": 100, "demo": true}`).Body).Decode(&job)
	for lines := bufio.NewScanner(call("GET", "/v1/runs/"+job.Run+"/events", "").Body); lines.Scan(); {
		if line := lines.Text(); strings.HasPrefix(line, "event:") { fmt.Println("event:", strings.TrimSpace(line[6:])) }
	}
}
