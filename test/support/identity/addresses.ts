/** Mail addresses of tests. An account belongs to the deployment, and test files share services. */
import { createHash } from 'node:crypto'

/** Marks this run of the file, which the runner repeats on the same services. A process runs one file after another. */
function mark(): string {
  return createHash('sha256')
    .update(`${process.env['TEST_FILE'] ?? ''} ${process.pid}`)
    .digest('hex')
    .slice(0, 8)
}
let domains = 0

/** An address that no other test file has. */
export function mailbox(name: string): string {
  return `${name}.${mark()}@harbour.test`
}

/** A domain of mail addresses that no other test has. */
export function mailDomain(): string {
  return `d${(domains += 1)}.${mark()}.works`
}

/** True for addresses from above, and for the fixture user of a tenant. */
export function isOwnAddress(address: string): boolean {
  return (
    address.includes(mark()) || (/@[\w-]+\.test$/.test(address) && !address.includes('@harbour.'))
  )
}
