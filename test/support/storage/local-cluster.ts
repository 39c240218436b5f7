/** A PostgreSQL cluster under Patroni, started by deploy/database/local-cluster.sh. */
import { execFile } from 'node:child_process'
import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { program } from '../service/program.js'
import { freePort } from '../service.js'

const SCRIPT = fileURLToPath(
  new URL('../../../../deploy/database/local-cluster.sh', import.meta.url),
)
const PROGRAMS = ['etcd', 'patroni', 'haproxy', 'pgbouncer', 'psql', 'setpriv']
const run = promisify(execFile)

export type NodeName = 'node1' | 'node2' | 'node3'

export interface LocalCluster {
  /** Each URL is of the service's role: HAProxy, PgBouncer behind it, and the nodes. */
  readonly urls: Readonly<Record<'primary' | 'pooler' | NodeName, string>>
  primary(): Promise<NodeName>
  /** What the script does with a node. */
  act(action: 'kill' | 'crash' | 'freeze' | 'thaw' | 'join', node: NodeName): Promise<void>
  stop(): Promise<void>
}

/** The programs of the cluster that are not installed. */
export const missingPrograms = () => PROGRAMS.filter((name) => program(name) === undefined)

export async function localCluster(): Promise<LocalCluster> {
  // The servers run as another account, to which the script gives the folder.
  const folder = mkdtempSync(join(tmpdir(), 'svc-cluster-'))
  const script = async (command: string, ...words: string[]) =>
    (await run('bash', [SCRIPT, command, folder, ...words])).stdout.trim()
  const stop = () => script('stop').then(() => undefined)
  const port = await freePort()
  const lines = await script('start', String(port)).catch(async (error: unknown) => {
    await stop()
    throw error
  })
  const urls = Object.fromEntries(lines.split('\n').map((line) => line.split(' ')))
  return {
    urls: urls as LocalCluster['urls'],
    primary: async () => (await script('primary')) as NodeName,
    act: (action, node) => script(action, node).then(() => undefined),
    stop,
  }
}
