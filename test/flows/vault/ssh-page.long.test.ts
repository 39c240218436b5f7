/** Runs the commands of docs/guides/vault/ssh-certificates.md against a local sshd. */
import { spawn } from 'node:child_process'
import { chmodSync, readFileSync } from 'node:fs'
import { text } from 'node:stream/consumers'
import { join } from 'node:path'
import test from 'ava'
import { apiOf } from '../../support/api.js'
import { docsPage, testCommands } from '../../support/pages/docs-page.js'
import { program } from '../../support/service/programs.js'
import { sharedService } from '../../support/service.js'
import { sshFolder, startSshd, USER } from '../../support/vault/ssh.js'

const title = 'docs/guides/vault/ssh-certificates.md, word for word: trust, log in, take back'
const sshdPath = process.getuid?.() === 0 ? program('sshd') : undefined
const ssh = program('ssh')

if (sshdPath === undefined || ssh === undefined) {
  test.skip(`${title} (skipped: needs sshd, ssh and root)`, () => undefined)
} else {
  testCommands(title, async (t) => {
    t.timeout(180_000)
    const running = await sharedService('plain')
    const api = apiOf(running)
    t.teardown(() => api.end())
    const { token, agentId, tenantId } = await api.workspace()
    const page = docsPage(t, 'guides/vault/ssh-certificates')
    const folder = sshFolder(page.folder)
    const server = await startSshd(sshdPath, folder, { trustless: true })
    t.teardown(() => server.stop())
    // The server of the guide is this machine.
    folder.write(
      'ssh_config',
      [
        'Host db1.example.com',
        '  HostName 127.0.0.1',
        `  Port ${server.port}`,
        '  StrictHostKeyChecking no',
        `  UserKnownHostsFile ${folder.path('known_hosts')}`,
        '  IdentitiesOnly yes',
        '  BatchMode yes',
        '  LogLevel ERROR',
        '',
      ].join('\n'),
    )
    const wrapped = `#!/bin/sh\nexec ${ssh} -F ${folder.path('ssh_config')} "$@"\n`
    chmodSync(folder.write('ssh', wrapped), 0o755)
    const env = {
      PATH: `${page.folder}:${process.env['PATH'] ?? ''}`,
      BASE: running.baseUrl,
      TOKEN: token,
      AGENT_TOKEN: token,
      LOGIN: USER,
      ...(running.ca === undefined ? {} : { CURL_CA_BUNDLE: folder.write('ca.pem', running.ca) }),
    }
    const [setUp, trust, login, ownKey, takeBack, fetchList] = page.blocks('sh').keys()
    t.is(page.blocks('sh').length, 6)
    await page.run('sh', setUp!, env)
    await page.run('sh', trust!, env)
    await server.reload()
    const entered = /load average/
    t.regex(await page.run('sh', login!, env), entered)
    const own = await page.run('sh', ownKey!, env)
    t.regex(own, entered)
    t.true(own.includes(`Key ID: "svc:${tenantId}:${agentId}"`), own)
    t.regex(own, /force-command uptime/)
    t.regex(own, /source-address 127\.0\.0\.0\/8,10\.0\.0\.0\/8/)

    // The revoked certificate is refused; the other one still works.
    t.like(JSON.parse(await page.run('sh', takeBack!, env)), { serial: serialOf(page.folder) })
    const last = (index: number) => page.blocks('sh')[index]!.trim().split('\n').at(-1)!
    const again = last(login!)
    t.regex(
      (await shell(env, page.folder, again)).output,
      entered,
      'the server has not fetched the list yet',
    )
    await page.run('sh', fetchList!, env)
    const refused = await shell(env, page.folder, again)
    t.is(refused.code, 255)
    t.regex(refused.output, /Permission denied/)
    const other = last(ownKey!)
    t.regex((await shell(env, page.folder, other)).output, entered)
  })
}

const serialOf = (folder: string) =>
  (JSON.parse(readFileSync(join(folder, 'signed.json'), 'utf8')) as { serial: string }).serial

/** Asynchronous, because the service that provides the list runs in this process. */
async function shell(env: Readonly<Record<string, string>>, cwd: string, line: string) {
  const child = spawn('bash', ['-c', `${line} 2>&1`], {
    cwd,
    env,
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const ended = new Promise<number | null>((resolve) => child.once('close', resolve))
  const output = await text(child.stdout)
  return { code: await ended, output }
}
