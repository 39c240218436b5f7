/** TLS to a real server is required, verified, and used for cancel requests too. */
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, chown, mkdtemp, realpath, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { ExecutionContext } from 'ava'
import { SYSTEM_HOME, serverAccount } from '../../../runtime/embedded/account.js'
import { findPrograms } from '../../../runtime/embedded/binaries.js'
import { processOptions } from '../../../runtime/embedded/cluster.js'
import { startEmbeddedPostgres } from '../../../runtime/embedded/postgres.js'
import { silentLogger } from '../../../runtime/kernel/log.js'
import { type OpenDatabase, openDatabase } from '../../../storage/platform/database.js'
import { sameUrls, testPoolSettings } from '../../support/storage/database.js'
import { testWithProgram } from '../../support/service/programs.js'
import { freePort } from '../../support/service.js'

/** A TCP server with a certificate for localhost. */
async function startTlsServer(t: ExecutionContext, openssl: string) {
  const folder = await realpath(await mkdtemp(join(tmpdir(), 'svc-tls-')))
  t.teardown(() => rm(folder, { recursive: true, force: true }))
  await chmod(folder, 0o755)
  const dataDir = join(folder, 'state')
  const embedded = await startEmbeddedPostgres({ dataDir, log: silentLogger, durable: false })
  await embedded.stop()

  const [key, certificate] = [join(folder, 'key.pem'), join(folder, 'certificate.pem')]
  execFileSync(
    openssl,
    ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '2']
      .concat(['-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost'])
      .concat(['-keyout', key, '-out', certificate]),
    { stdio: 'ignore' },
  )
  await chmod(key, 0o600)
  const account = await serverAccount()
  if (account) await chown(key, account.uid, account.gid)
  const programs = await findPrograms({ folder: SYSTEM_HOME, always: account !== undefined })

  const port = await freePort()
  const url = new URL(embedded.url)
  const cluster = url.searchParams.get('host')!
  const options = {
    listen_addresses: '127.0.0.1',
    port: String(port),
    unix_socket_directories: '',
    ssl: 'on',
    ssl_key_file: key,
    ssl_cert_file: certificate,
    fsync: 'off',
  }
  const server = spawn(
    programs.postgres,
    [
      '-D',
      cluster,
      ...Object.entries(options).flatMap(([name, value]) => ['-c', `${name}=${value}`]),
    ],
    { ...processOptions(account), stdio: 'ignore' },
  )
  t.teardown(async () => {
    const gone = once(server, 'exit')
    server.kill('SIGQUIT')
    await gone
  })
  url.searchParams.delete('host')
  url.searchParams.delete('sslmode')
  url.port = String(port)
  return { url: url.href, certificate }
}

function open(url: string): Promise<OpenDatabase> {
  return openDatabase({
    settings: { ...testPoolSettings, require_ssl: true },
    urls: sameUrls(url),
    plane: 'all',
    log: silentLogger,
  })
}

testWithProgram(
  'openssl',
  'require_ssl speaks TLS, to whom it can verify only',
  async (t, openssl) => {
    const { url, certificate } = await startTlsServer(t, openssl)
    const trusted = new URL(url)
    trusted.searchParams.set('sslmode', 'verify-full')
    trusted.searchParams.set('sslrootcert', certificate)
    const database = await open(trusted.href)
    for (let i = 0; ; i += 1) {
      const up = await database.ping().then(
        () => true,
        () => false,
      )
      if (up) break
      if (i > 400) t.fail('the server does not start')
      await sleep(25)
    }
    const { rows } = await database.single({
      name: 'tls',
      text: 'select ssl, version from pg_stat_ssl where pid = pg_backend_pid()',
    })
    t.like(rows[0], { ssl: true })

    const abort = new AbortController()
    setTimeout(() => abort.abort(new Error('enough')), 50)
    const sleeping = database.system(
      (tx) => tx.query({ name: 'sleep', text: 'select pg_sleep(25)' }),
      { signal: abort.signal },
    )
    await t.throwsAsync(sleeping, { message: 'enough' })
    t.is(database.stats().find(({ pool }) => pool === 'plane')?.open, 1, 'cancelled, not cut')
    await database.close()

    const unverified = await open(url)
    await t.throwsAsync(unverified.ping(), { message: /certificate|no connection/ })
    await unverified.close()

    const misnamed = new URL(trusted)
    misnamed.hostname = '127.0.0.1'
    const other = await open(misnamed.href)
    await t.throwsAsync(other.ping())
    await other.close()
  },
)
