/** Mail addresses of tests. An account belongs to the deployment, and test files share services. */
import { createHash } from 'node:crypto'

const FILE = createHash('sha256')
  .update(process.env['TEST_FILE'] ?? '')
  .digest('hex')
  .slice(0, 8)

/** An address that no other test file has. */
export function mailbox(name: string): string {
  return `${name}.${FILE}@harbour.test`
}
