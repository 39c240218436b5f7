/** A process with two gateway threads that ends without a stop: its exit code is 7. */
import { twoThreads } from './two-threads.js'

const { running } = await twoThreads()
await running.kms.end()
await running.db.drop()
process.exit(7)
