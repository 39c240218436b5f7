/** A TypeScript client that is generated from the OpenAPI document compiles, and speaks to the service. */
import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import test from 'ava'
import { apiOf } from '../support/api.js'
import { installedPackages } from '../support/service/node-packages.js'
import { testService } from '../support/service.js'

const run = promisify(execFile)
// A separate TypeScript 5: the generator needs the compiler API, which TypeScript 7 does not have.
const PACKAGES = ['openapi-typescript@7.13.0', 'openapi-fetch@0.17.0', 'typescript@5.9.3']

const PROGRAM = `
import createClient from 'openapi-fetch'
import type { components, paths } from "./svc.js"

const { BASE = '', TOKEN = '' } = process.env
const client = createClient<paths>({ baseUrl: BASE, headers: { authorization: \`Bearer \${TOKEN}\` } })
const made = await client.POST('/api/v1/applications', {
  body: { name: 'Generated', redirect_uris: ['https://app.example.com/callback'] },
})
if (made.data === undefined) throw new Error(JSON.stringify(made.error))
const id: string = made.data.id
const read = await client.GET('/api/v1/applications/{application_id}', {
  params: { path: { application_id: id } },
})
const problem: components['schemas']['Problem'] | undefined =
  read.error === undefined ? undefined : (read.error as components['schemas']['Problem'])
// @ts-expect-error: a name is required
await client.POST('/api/v1/applications', { body: {} })
// @ts-expect-error: there is no such operation
await client.GET('/api/v1/nothing')
process.stdout.write(\`\${read.data?.name} \${problem?.detail}\\n\`)
`

test('a generated TypeScript client compiles and creates an application', async (t) => {
  t.timeout(240_000)
  const folder = await installedPackages('openapi-typescript-7.13.0', PACKAGES)
  const running = await testService({ transport: 'plain_http' })
  const api = apiOf(running)
  t.teardown(() => api.end())
  const own = await api.workspace()
  const { body } = await api.get('/openapi.json')
  const made = mkdtempSync(join(folder, 'generated-'))
  t.teardown(() => rmSync(made, { recursive: true }))
  writeFileSync(join(made, 'openapi.json'), JSON.stringify(body))
  writeFileSync(join(made, 'package.json'), '{"type":"module"}')
  writeFileSync(join(made, 'program.ts'), PROGRAM)
  const bin = (name: string) => join(folder, 'node_modules/.bin', name)
  await run(bin('openapi-typescript'), ['openapi.json', '-o', 'svc.d.ts'], { cwd: made })
  const types = new URL('../../../node_modules/@types', import.meta.url).pathname
  const options = '--strict --exactOptionalPropertyTypes --noUncheckedIndexedAccess --target es2022'
  const more = [
    '--module',
    'nodenext',
    '--lib',
    'es2022,dom',
    '--typeRoots',
    types,
    '--types',
    'node',
  ]
  await run(bin('tsc'), [...options.split(' '), ...more, 'program.ts'], { cwd: made }).catch(
    (error: { stdout: string }) => {
      throw new Error(error.stdout)
    },
  )
  const { stdout } = await run(process.execPath, ['program.js'], {
    cwd: made,
    env: { PATH: process.env['PATH'], BASE: running.baseUrl, TOKEN: own.token },
  })
  t.is(stdout, 'Generated undefined\n')
})
