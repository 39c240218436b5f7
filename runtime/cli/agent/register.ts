/** `svc agent register` and `svc agent workspace create`. */
import { type AgentKey, createAgentKey, openAgentKey } from '../../clients/client/agent.js'
import { type HttpClient, httpClient } from '../../clients/client/http.js'
import {
  holdingIdentity,
  readIdentity,
  type StoredIdentity,
  writeIdentity,
} from '../../clients/client/identity-file.js'
import {
  createWorkspace,
  readMetadata,
  registerAgent,
  type WorkProgress,
} from '../../clients/client/registration.js'
import type { Run } from './run.js'
import { checkAddress } from '../service-access.js'
import { withTarget } from '../target.js'

export type NewAgentWishes = {
  name: string
  url?: string
  algorithm: 'ed25519' | 'es256'
  tenantId?: string
  direct?: boolean
}
export type WorkspaceWishes = NewAgentWishes & {
  organization: string
  redirectUri: string[]
  framework: string
  operatorInvite?: boolean
}

/** The shortest time between two progress lines. */
const PROGRESS_MS = 250
const PROGRESS_LINES_MS = 2_000

export async function register(run: Run, wishes: NewAgentWishes): Promise<void> {
  const { name, tenantId, direct } = wishes
  await enrolling(run, wishes, async (http, key, keep) => {
    const progress = progressOf(run)
    const made = await registerAgent({ http, key, name, tenantId, direct, ...progress })
    progress.done()
    await keep({ agent_id: made.agentId, home_tenant_id: made.tenantId, tenant_id: made.tenantId })
    if (run.json) return run.out(`${JSON.stringify(withTarget(made.body))}\n`)
    run.out(`Agent ${made.agentId} in tenant ${made.tenantId}, stored in ${run.file}\n`)
  })
}

export async function workspace(run: Run, wishes: WorkspaceWishes): Promise<void> {
  const { name, organization: organizationName, redirectUri: redirectUris, framework } = wishes
  await enrolling(run, wishes, async (http, key, keep, named) => {
    const progress = progressOf(run)
    const made = await createWorkspace({
      http,
      key,
      name,
      organizationName,
      redirectUris,
      framework,
      issueOperatorInvite: wishes.operatorInvite,
      ...progress,
    })
    progress.done()
    // Printed before it is stored, because the response shows some values only once.
    if (run.json) run.out(`${JSON.stringify(withTarget(made.body))}\n`)
    else run.out(workspaceText(made.body, named))
    await keep({
      agent_id: made.agentId,
      home_tenant_id: made.homeTenantId,
      tenant_id: made.tenantId,
    })
    if (!run.json) run.err(`Agent ${made.agentId}, stored in ${run.file}\n`)
  })
}

type Keep = (
  known: Pick<StoredIdentity, 'agent_id' | 'home_tenant_id' | 'tenant_id'>,
) => Promise<void>

/**
 * The key is stored before anything is sent, so a lost response costs no identity. A registration
 * without a response is continued with the same key.
 */
export async function enrolling(
  run: Run,
  { name, url: named, algorithm }: NewAgentWishes,
  enrol: (http: HttpClient, key: AgentKey, keep: Keep, issuer: string) => Promise<void>,
): Promise<void> {
  const baseUrl = named ?? (await run.baseUrl())
  checkAddress('--url', baseUrl)
  await holdingIdentity(run.file, async () => {
    const known = await readIdentity(run.file)
    if (known !== undefined && known.agent_id !== null) {
      throw new Error(
        `${run.file} already contains the agent ${known.agent_id}: name another --agent-file`,
      )
    }
    if (known !== undefined && known.base_url !== baseUrl) {
      throw new Error(
        `${run.file} contains a registration at ${known.base_url}: name another --agent-file`,
      )
    }
    const key = known === undefined ? createAgentKey(algorithm) : openAgentKey(known.private_key)
    const http = httpClient(baseUrl)
    try {
      const { issuer } = await readMetadata(http)
      const begun: StoredIdentity = {
        version: 1,
        base_url: baseUrl,
        issuer,
        name,
        agent_id: null,
        home_tenant_id: null,
        tenant_id: null,
        private_key: key.exportPem(),
        tokens: [],
        delegations: [],
      }
      await writeIdentity(run.file, begun)
      const keep: Keep = (found) => writeIdentity(run.file, { ...begun, ...found })
      await enrol(http, key, keep, issuer)
    } finally {
      await http.close()
    }
  })
}

function workspaceText(body: Readonly<Record<string, unknown>>, issuer: string): string {
  const login = `${issuer}/auth/login?tenant_slug=${String(body['tenant_slug'])}`
  const fixture = body['fixture_end_user'] as Readonly<Record<string, unknown>>
  const invite = body['operator_invite'] as Readonly<Record<string, unknown>> | undefined
  return [
    `Organization ${String(body['organization_slug'])}, sandbox ${String(body['tenant_slug'])}.`,
    'The following is shown only once.',
    '',
    String(body['env_block']).trimEnd(),
    '',
    `Test user ${String(fixture['email'])}, password ${String(fixture['password'])}`,
    `Sign in at ${login}`,
    ...(invite === undefined ? [] : [`Owner invite: ${String(invite['url'])}`]),
    '',
  ].join('\n')
}

/** On stderr, so that stdout has only the result. */
export function progressOf({ err, terminal, json, clock, signal }: Run) {
  const startedMs = clock.monotonicMs()
  let shownMs = startedMs
  let shown = false
  return {
    signal,
    onProgress({ difficultyBits, tried, expected }: WorkProgress) {
      const nowMs = clock.monotonicMs()
      if (nowMs - shownMs < (terminal && !json ? PROGRESS_MS : PROGRESS_LINES_MS)) return
      shownMs = nowMs
      shown = true
      const secs = (nowMs - startedMs) / 1000
      if (json) {
        const members = {
          progress: 'proof_of_work',
          difficulty_bits: difficultyBits,
          tried,
          expected,
        }
        return err(`${JSON.stringify(members)}\n`)
      }
      const share = `${Math.round((100 * tried) / expected)} % of the expected ${expected} tries`
      const line = `proof of work, ${difficultyBits} bits: ${share}, ${secs.toFixed(1)} s`
      err(terminal ? `\r\u001b[K${line}` : `${line}\n`)
    },
    done() {
      if (shown && terminal && !json) err('\r\u001b[K')
    },
  }
}
