/** A peer cannot crash the process through node:http2. */
import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import test from 'ava'
import { runs } from '../../support/runs.js'

const CALLS = runs(400, 100)

test('responses with too many header fields do not crash the process during garbage collection', async (t) => {
  const script = fileURLToPath(new URL('./refused-heads.js', import.meta.url))
  const argv = ['--expose-gc', script, String(CALLS)]
  const { stdout } = await promisify(execFile)(process.execPath, argv)
  t.is(Number(stdout), CALLS)
})
