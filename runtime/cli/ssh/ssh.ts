/** `svc ssh host-setup`: makes a host trust an SSH certificate authority and follow its revocations. */
import { execFileSync, spawnSync } from 'node:child_process'
import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import type { Command } from 'commander'
import { httpClient } from '../../clients/client/http.js'
import { errorText } from '../../process/error-text.js'
import { lineHost } from '../output.js'
import { checkAddress, serviceOption } from '../service-access.js'
import { resultText } from '../target.js'
import { hostFiles, type HostPlan, hostPaths, TIMER } from './host-files.js'

type HostOptions = {
  readonly url?: string
  readonly authority?: string
  readonly root: string
  readonly caFile?: string
  readonly check?: boolean
  readonly json?: boolean
}
type Check = { readonly check: string; readonly ok: boolean; readonly detail?: string }

/** Adds `ssh` with its sub-command to the program. */
export function sshCommand(program: Command, host = lineHost): void {
  const ssh = program.command('ssh').description('hosts that trust an SSH certificate authority')
  ssh
    .command('host-setup')
    .description('make sshd of this host trust an authority, and fetch its revocations every 20 s')
    .addOption(serviceOption().makeOptionMandatory(false))
    .option('--authority <id>', 'the credential_id of the authority; not for --check')
    .option('--ca-file <file>', 'PEM of the CA of the service, if the host does not know it')
    .option('--root <dir>', 'write below this folder instead of /, and start nothing', '/')
    .option('--check', 'write nothing, check what an earlier run wrote')
    .option('--json', 'as JSON')
    .action(async (options: HostOptions) => {
      try {
        const root = resolve(options.root)
        const did = options.check === true ? [] : await setUp(root, options)
        const checks = checked(root)
        const lines = [
          ...did,
          ...checks.map(({ check, ok, detail }) =>
            [ok ? 'ok' : 'failed', check, ...(detail === undefined ? [] : [`(${detail})`])].join(
              ' ',
            ),
          ),
        ]
        host.out(resultText(options.json === true, { did, checks }, lines.join('\n')))
        if (checks.some(({ ok }) => !ok)) host.exitWith(1)
      } catch (error) {
        host.err(`svc ssh host-setup: ${errorText(error)}`)
        host.exitWith(1)
      }
    })
}

/** Writes the files and starts the timer. @returns what it did. */
async function setUp(
  root: string,
  { url, authority, caFile }: HostOptions,
): Promise<readonly string[]> {
  if (url === undefined || authority === undefined)
    throw new Error('--url and --authority are needed')
  checkAddress('--url', url)
  if (!/^[0-9a-fA-F-]{36}$/.test(authority))
    throw new Error('--authority must be the id of a credential')
  const address = `${url.replace(/\/+$/, '')}/ssh/${authority.toLowerCase()}`
  const plan: HostPlan = { address, root, caFile: caFile === undefined ? null : resolve(caFile) }
  const paths = hostPaths(root)
  const signers = await signersOf(plan)
  refuseOthers(paths.config, paths.keys)
  const did = [
    written(paths.signers, 0o644, signers),
    ...hostFiles(plan)
      .filter(({ path }) => path !== paths.part)
      .map(({ path, mode, text }) => written(path, mode, text)),
  ]
  // sshd refuses every key while the file of RevokedKeys is missing, so the list comes first.
  execFileSync(paths.refresh, { stdio: ['ignore', 'ignore', 'inherit'] })
  did.push(`fetched ${paths.list} and ${paths.keys}`)
  const part = hostFiles(plan).find(({ path }) => path === paths.part)!
  did.push(written(part.path, part.mode, part.text), included(paths.config, paths.parts))
  if (root !== '/') return [...did, `started nothing: ${root} is not /`]
  execFileSync('systemctl', ['daemon-reload'])
  execFileSync('systemctl', ['enable', '--now', TIMER])
  const names = ['ssh', 'sshd']
  const reloaded = names.find((name) => spawnSync('systemctl', ['reload', name]).status === 0)
  if (reloaded === undefined) throw new Error('systemctl could reload neither ssh nor sshd')
  return [...did, `enabled ${TIMER}`, `reloaded ${reloaded}`]
}

/** The line with the key that signs the files. It is fetched once, and the host keeps it. */
async function signersOf({ address, caFile }: HostPlan): Promise<string> {
  const client = httpClient(address, caFile === null ? undefined : readFileSync(caFile, 'utf8'))
  try {
    const path = `${new URL(address).pathname}/allowed_signers`
    const { status, body } = await client.request({
      method: 'GET',
      path,
      headers: { accept: 'text/plain' },
    })
    if (status !== 200) throw new Error(`${address}/allowed_signers: status ${status}`)
    return String(body)
  } finally {
    await client.close()
  }
}

function written(path: string, mode: number, text: string): string {
  const isSame = existsSync(path) && readFileSync(path, 'utf8') === text
  if (!isSame) {
    mkdirSync(dirname(path), { recursive: true })
    writeFileSync(path, text)
  }
  chmodSync(path, mode)
  return `${isSame ? 'kept' : 'wrote'} ${path}`
}

/** sshd uses the first of these lines: a second one would end the trust in another authority. */
function refuseOthers(config: string, own: string): void {
  if (!existsSync(config)) return
  const other = /^\s*(?:TrustedUserCAKeys|RevokedKeys)\s+(?!none\b)(\S+)/im.exec(
    readFileSync(config, 'utf8'),
  )
  if (other === null || other[1]!.startsWith(dirname(own))) return
  throw new Error(
    `${config} has "${other[0].trim()}": sshd has one such file, so remove the line first`,
  )
}

function included(config: string, parts: string): string {
  const text = existsSync(config) ? readFileSync(config, 'utf8') : ''
  if (hasPart(text, parts)) return `kept ${config}`
  // The first value of a keyword counts, so the line stands before all others.
  return written(config, 0o644, `Include ${parts}\n${text}`)
}

const hasPart = (config: string, parts: string): boolean =>
  config
    .split('\n')
    .some(
      (line) => /^\s*Include\s/i.test(line) && line.includes(parts.replace(/^\/etc\/ssh\//, '')),
    )

/** Asks facts, and runs what the timer runs. */
function checked(root: string): readonly Check[] {
  const paths = hostPaths(root)
  const text = (path: string) => (existsSync(path) ? readFileSync(path, 'utf8') : '')
  const command = /^ExecStart=(.*)$/m.exec(text(paths.service))?.[1] ?? ''
  const checks: Check[] = [
    {
      check: `${paths.config} includes ${paths.part}`,
      ok: hasPart(text(paths.config), paths.parts) && text(paths.part) !== '',
    },
    {
      check: `${paths.part} names ${paths.keys} and ${paths.list}`,
      ok: [`TrustedUserCAKeys ${paths.keys}`, `RevokedKeys ${paths.list}`].every((line) =>
        text(paths.part).split('\n').includes(line),
      ),
    },
    ran(`${paths.service} fetches list and keys`, command, []),
    { check: `${paths.keys} has a key`, ok: /^(?:ssh-|ecdsa-)/.test(text(paths.keys)) },
    ran(`ssh-keygen reads ${paths.list}`, 'ssh-keygen', ['-Q', '-l', '-f', paths.list]),
    { check: `${paths.timer} starts it`, ok: /^OnUnitActiveSec=/m.test(text(paths.timer)) },
  ]
  if (root !== '/') return checks
  return [
    ...checks,
    ran(`${TIMER} is active`, 'systemctl', ['is-active', TIMER]),
    ran('sshd accepts its configuration', 'sshd', ['-t']),
  ]
}

function ran(check: string, command: string, args: readonly string[]): Check {
  if (command === '') return { check, ok: false, detail: 'no command' }
  const { status, error, stderr } = spawnSync(command, [...args], { encoding: 'utf8' })
  if (status === 0) return { check, ok: true }
  return { check, ok: false, detail: error?.message ?? (stderr.trim() || `exit code ${status}`) }
}
