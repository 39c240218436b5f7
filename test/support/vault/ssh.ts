/** A folder with SSH keys and certificates, and a local sshd that trusts an authority. */
import { execFile, type ChildProcess, spawn } from 'node:child_process'
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir, userInfo } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { freePort } from '../service.js'
import { until } from '../service/watch.js'

const run = promisify(execFile)
const START_MS_MAX = 15_000
const OUTPUT_BYTES_MAX = 64 * 1024 * 1024
/** Only the certificate, without prompts. */
const SSH_OPTIONS = [
  'IdentitiesOnly=yes',
  'PreferredAuthentications=publickey',
  'BatchMode=yes',
  'StrictHostKeyChecking=no',
  'ConnectTimeout=20',
  'LogLevel=ERROR',
]

export interface SshFolder {
  path(name: string): string
  /** Writes a file with mode 0600, which ssh requires for keys. */
  write(name: string, content: string | Uint8Array): string
  remove(): void
}

export function sshFolder(folder = mkdtempSync(join(tmpdir(), 'svc-ssh-'))): SshFolder {
  const path = (name: string) => join(folder, name)
  return {
    path,
    write(name, content) {
      writeFileSync(path(name), content, { mode: 0o600 })
      return path(name)
    },
    remove: () => rmSync(folder, { recursive: true, force: true }),
  }
}

export type Ran = { readonly code: number; readonly output: string }

/** Runs a program. @returns its output and exit code. */
export async function ran(program: string, ...args: string[]): Promise<Ran> {
  try {
    const { stdout, stderr } = await run(program, args, {
      timeout: 100_000,
      maxBuffer: OUTPUT_BYTES_MAX,
    })
    return { code: 0, output: stdout + stderr }
  } catch (error) {
    const {
      code,
      stdout = '',
      stderr = '',
    } = error as {
      code?: number
      stdout?: string
      stderr?: string
    }
    return { code: typeof code === 'number' ? code : -1, output: stdout + stderr }
  }
}

export interface Sshd {
  readonly port: number
  /** Later connections use the current content of the files. */
  trust(caPublicKey: string): void
  revoke(krl: Uint8Array): void
  /** Logs in and prints a word. @returns 0 on success. */
  login(user: string, privateKey: string, certificate: string): Promise<Ran>
  /** Reloads the configuration. */
  reload(): Promise<void>
  stop(): Promise<void>
}

export type SshdOptions = {
  /** Without trusted authorities; the test writes them into `sshd_config`. */
  readonly trustless?: boolean | undefined
}

/** Debian's sshd on loopback, with certificate login only. Needs root. */
export async function startSshd(
  program: string,
  folder: SshFolder,
  { trustless = false }: SshdOptions = {},
): Promise<Sshd> {
  const port = await freePort()
  const hostKey = folder.path('host_key')
  await ran('ssh-keygen', '-q', '-t', 'ed25519', '-N', '', '-f', hostKey)
  const trusted = folder.write('trusted', '')
  chmodSync(trusted, 0o644)
  // Without the file sshd refuses every key; an empty one is valid.
  const revoked = folder.write('revoked', '')
  // Privilege separation needs this folder, which the init system usually creates.
  mkdirSync('/run/sshd', { recursive: true, mode: 0o755 })
  const config = folder.write(
    'sshd_config',
    [
      `Port ${port}`,
      'ListenAddress 127.0.0.1',
      `HostKey ${hostKey}`,
      `PidFile ${folder.path('pid')}`,
      ...(trustless ? [] : [`TrustedUserCAKeys ${trusted}`, `RevokedKeys ${revoked}`]),
      'AuthorizedKeysFile none',
      'PasswordAuthentication no',
      'KbdInteractiveAuthentication no',
      'UsePAM no',
      'PermitRootLogin prohibit-password',
      'StrictModes no',
      'LogLevel VERBOSE',
      '',
    ].join('\n'),
  )
  const child = spawn(program, ['-D', '-e', '-f', config], { stdio: ['ignore', 'ignore', 'pipe'] })
  let log = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    log += text
  })
  await answering(port, child, () => log)
  return {
    port,
    trust: (caPublicKey) => void folder.write('trusted', `${caPublicKey}\n`),
    revoke: (krl) => void folder.write('revoked', krl),
    login: (user, privateKey, certificate) =>
      ran(
        'ssh',
        '-F',
        'none',
        ...SSH_OPTIONS.flatMap((option) => ['-o', option]),
        '-o',
        `UserKnownHostsFile=${folder.path('known_hosts')}`,
        '-o',
        `CertificateFile=${certificate}`,
        '-i',
        privateKey,
        '-p',
        String(port),
        `${user}@127.0.0.1`,
        'echo in',
      ),
    async reload() {
      const before = restarts(log)
      child.kill('SIGHUP')
      await until('sshd to restart', () => restarts(log) > before)
      await answering(port, child, () => log)
    },
    async stop() {
      if (child.exitCode !== null) return
      const ended = new Promise((resolve) => child.once('exit', resolve))
      child.kill()
      await ended
    },
  }
}

const restarts = (log: string) => log.split('Server listening on').length

/** The user of the tests, the only one that a server without users knows. */
export const USER = userInfo().username

async function answering(port: number, child: ChildProcess, log: () => string): Promise<void> {
  const untilMs = Date.now() + START_MS_MAX
  while (Date.now() < untilMs) {
    if (child.exitCode !== null) throw new Error(`sshd ended: ${log()}`)
    const open = await new Promise<boolean>((resolve) => {
      const socket = connect(port, '127.0.0.1', () => {
        socket.destroy()
        resolve(true)
      })
      socket.on('error', () => resolve(false))
    })
    if (open) return
    await sleep(50)
  }
  child.kill()
  throw new Error(`sshd does not answer: ${log()}`)
}
