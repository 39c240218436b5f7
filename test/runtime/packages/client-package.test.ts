/** The package `@svc/client`: its content, and that programs compile against it and run with it. */
import { execFile } from 'node:child_process'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import test from 'ava'
import { CLIENT_DEPENDENCIES, installClientPackage } from '../../support/service/client-package.js'
import { IS_LONG } from '../../support/runs.js'

const run = promisify(execFile)
const client = await installClientPackage()
test.after.always(() => client.remove())
const own = join(client.folder, 'node_modules/@svc/client')

test('it is small and depends on three packages', (t) => {
  t.true(client.tarballBytes < 80_000, `${client.tarballBytes} bytes`)
  const manifest = JSON.parse(readFileSync(join(own, 'package.json'), 'utf8')) as {
    dependencies: Record<string, string>
    version: string
  }
  t.deepEqual(Object.keys(manifest.dependencies), [...CLIENT_DEPENDENCIES])
  const installed = readdirSync(join(client.folder, 'node_modules')).filter(
    (name) => !name.startsWith('.'),
  )
  t.deepEqual(installed.toSorted(), ['@svc', ...CLIENT_DEPENDENCIES].toSorted())
})

test('it has no module of the server', (t) => {
  const files = readdirSync(join(own, 'lib'), { recursive: true, encoding: 'utf8' })
  const modules = files.filter((name) => name.endsWith('.js'))
  t.true(modules.length > 20)
  t.deepEqual(
    modules.filter((name) => /^(?:gateway|storage|runtime\/(?:cli|wiring))\//.test(name)),
    [],
  )
  const readme = readFileSync(join(own, 'README.md'), 'utf8')
  t.true(readme.includes('verifyToken'))
  const links = [...readme.matchAll(/\]\(([^)]*)\)/g)].map(([, target]) => target!)
  t.deepEqual(
    links.filter((target) => !target.startsWith('https://')),
    [],
    'a link into the repository leads nowhere',
  )
})

const longTest = IS_LONG ? test : undefined

longTest?.('TypeScript programs compile against it', async (t) => {
  const program = `
    import { agentSession, createAgentKey, createResourceServer, egressFetch, httpClient, verifyToken, verifyWebhook, walletFetch } from '@svc/client'
    import type { AccessToken } from '@svc/client/resource-server'
    const token: AccessToken = await verifyToken('x', { issuer: 'https://id.example.com', audience: 'x' })
    const event: string = verifyWebhook({ headers: new Headers(), body: '', secret: 'x'.repeat(16) }).eventType
    const call: typeof fetch = egressFetch({ baseUrl: 'https://id.example.com', credentialId: 'x', token: 'x' })
    const paying: typeof fetch = walletFetch({ baseUrl: 'https://id.example.com', token: 'x' })
    const session = agentSession({ http: httpClient('https://id.example.com'), key: createAgentKey(), issuer: 'x' })
    void [token.subject, event, call, paying, session, createResourceServer]
    // @ts-expect-error: options are checked
    await verifyToken('x', { issuer: 7 })
  `
  writeFileSync(join(client.folder, 'program.mts'), program)
  const root = new URL('../../../../', import.meta.url).pathname
  const options = '--strict --noEmit --target es2023 --module nodenext --types node --skipLibCheck'
  await t.notThrowsAsync(
    run(
      process.execPath,
      [
        join(root, 'node_modules/typescript/bin/tsc'),
        '--ignoreConfig',
        ...options.split(' '),
        '--typeRoots',
        join(root, 'node_modules/@types'),
        'program.mts',
      ],
      { cwd: client.folder },
    ).catch((error: { stdout: string }) => {
      throw new Error(error.stdout)
    }),
  )
})
