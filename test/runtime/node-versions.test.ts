/** The service under every supported version of Node.js: it starts, the whole tour passes, and SSH authorities sign. */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import test from 'ava'
import { svc } from '../flows/vault/command.js'
import { freePort } from '../support/service.js'
import { freshDatabase } from '../support/storage/database.js'
import { OTHER_MAJORS, OTHER_NODE_MISSING, otherNode } from '../support/other-node.js'

const { header } = process.report.getReport() as unknown as {
  header: { glibcVersionRuntime?: string }
}
const [, minor = 0] = (header.glibcVersionRuntime ?? '').split('.').map(Number)
const hasNewGlibc = minor >= 38
const ROOT = fileURLToPath(new URL('../../../', import.meta.url))
/** Makes and opens the key of an authority. Newer versions of Node.js check more of a key. */
const KEY_TEST = [
  'dist/test/actors/vault/ssh-certificates/certificate.test.js',
  '--match=the bytes of the authority are wiped',
]

for (const major of OTHER_MAJORS) {
  const title = `the tour passes under Node.js ${major}`
  const on = OTHER_NODE_MISSING === null ? test.serial : test.skip
  on(OTHER_NODE_MISSING === null ? title : `${title} (${OTHER_NODE_MISSING})`, async (t) => {
    const node = await otherNode(major)
    const version = execFileSync(node, ['--version'], { encoding: 'utf8' })
    t.true(version.startsWith(`v${major}.`))
    t.log(version.trim())
    const ava = ['node_modules/ava/entrypoints/cli.mjs', '--tap', ...KEY_TEST]
    t.regex(execFileSync(node, ava, { cwd: ROOT, encoding: 'utf8' }), /^# pass 1$/m)
    const { url } = await freshDatabase(t)
    const dataDir = mkdtempSync(join(tmpdir(), 'svc-node-'))
    t.teardown(() => rmSync(dataDir, { recursive: true, force: true }))
    const port = await freePort()
    const service = svc(t, {
      node,
      environment: {
        DATABASE_URL: url,
        SVC_DATA_DIR: dataDir,
        SVC_SERVER__PORT: String(port),
        SVC_SERVER__HTTP1_PARSER: 'uwebsockets',
        SVC_CHALLENGE__POW_DIFFICULTY_BITS: '8',
        SVC_CHALLENGE__POW_MIN_DURATION_SECS: '0',
      },
    })
    await service.ready()
    // The binaries for these versions need glibc 2.38 (Debian 13, Ubuntu 24.04). Elsewhere node:http serves.
    const fallback = /uWebSockets is not available/
    if (hasNewGlibc) t.notRegex(service.output(), fallback)
    else t.regex(service.output(), fallback)
    t.notRegex(service.output(), /\(node:\d+\).*Warning/)
    const tour = svc(t, { node, args: ['tour', '--url', `http://localhost:${port}`] })
    t.is(await tour.ended(), 0, tour.output())
    t.regex(tour.output(), /The tour is over/)
    service.child.kill('SIGTERM')
    t.is(await service.ended(), 0, service.output())
  })
}
