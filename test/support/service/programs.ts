/** External programs that a test needs. Where one is absent, the test is skipped. */
import test, { type ExecutionContext } from 'ava'
import { program } from './program.js'

export { program } from './program.js'

/**
 * A test that needs a program. Without the program it is skipped under a title that says so, which
 * the summary of the run shows. Those of a file run one after another: each has processes of its own.
 */
export function testWithProgram(
  name: string,
  title: string,
  body: (t: ExecutionContext, path: string) => Promise<void> | void,
): void {
  const path = program(name)
  if (path === undefined) test.skip(`${title} (skipped: ${name} is not installed)`, () => undefined)
  else test.serial(title, (t) => body(t, path))
}
