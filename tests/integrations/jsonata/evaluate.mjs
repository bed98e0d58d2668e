// Evaluates expressions as jsonata of npm does: a line of {"expression", "input"} in, a line of the result out.
import { createInterface } from "node:readline";
import jsonata from "jsonata";

for await (const line of createInterface({ input: process.stdin })) {
  const { expression, input } = JSON.parse(line);
  const result = await jsonata(expression).evaluate(input);
  console.log(JSON.stringify(result ?? null));
}
