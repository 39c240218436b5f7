/** The packages `@svc/client` and `@svc/resource-server`: their content, and that programs compile against the client. */
import { execFile } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import test from 'ava'
import {
  CLIENT_DEPENDENCIES,
  installClientPackage,
  packedPackage,
} from '../../../support/service/client-package.js'
import { IS_LONG } from '../../../support/runs.js'

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
    modules.filter((name) => /^(?:gateway|storage|runtime\/(?:cli|embedded|process))\//.test(name)),
    [],
  )
  t.deepEqual(unknownIn(readFileSync(join(own, 'README.md'), 'utf8')), [])
})

test('the resource server is a package too, and the scope of both names is an option', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'svc-package-'))
  t.teardown(() => rmSync(folder, { recursive: true }))
  const tarball = await packedPackage('resource-server', folder, '--scope', '@acme')
  await run('tar', ['-xzf', tarball, '-C', folder])
  const read = (name: string) => readFileSync(join(folder, 'package', name), 'utf8')
  const manifest = JSON.parse(read('package.json')) as {
    name: string
    dependencies: object
    exports: Readonly<Record<string, { default: string }>>
  }
  t.is(manifest.name, '@acme/resource-server')
  t.deepEqual(Object.keys(manifest.dependencies), ['jose'])
  t.true(read(manifest.exports['.']!.default).includes('createResourceServer'))
  const modules = readdirSync(join(folder, 'package/lib'), { recursive: true, encoding: 'utf8' })
  t.deepEqual(
    modules.filter(
      (name) => name.endsWith('.js') && !/^runtime\/(kernel|clients\/resource-server)\//.test(name),
    ),
    [],
  )
  const readme = read('README.md')
  t.true(readme.includes("from '@acme/resource-server'") && !readme.includes('@svc/'))
  t.deepEqual(unknownIn(readme), [])
  await t.throwsAsync(packedPackage('resource-server', folder, '--scope', 'acme'))
})

/** Links of a README that lead into the repository, and imports that the client package does not have. */
function unknownIn(readme: string): readonly string[] {
  const links = [...readme.matchAll(/\]\(([^)]*)\)/g)].map(([, target]) => target!)
  const exported = readFileSync(
    join(own, 'lib/runtime/clients/client/exports.d.ts'),
    'utf8',
  ).concat(readFileSync(join(own, 'lib/runtime/clients/resource-server/exports.d.ts'), 'utf8'))
  const imported = [...readme.matchAll(/^import \{ ([^}]+) \} from '@\w+\//gm)]
  return [
    ...links.filter((target) => !target.startsWith('https://')),
    ...imported
      .flatMap(([, names]) => names!.split(', '))
      .filter((name) => !new RegExp(`\\b${name}\\b`).test(exported)),
  ]
}

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
  const root = new URL('../../../../../', import.meta.url).pathname
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
