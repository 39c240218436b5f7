/** `svc operator ...` on the machine of the services, and agents that it appointed. */
import { Command } from 'commander'
import { openDatabaseTools } from '../../../runtime/cli/key-tools.js'
import { operatorCommand } from '../../../runtime/cli/operator.js'
import type { Api, Workspace } from '../api.js'

export type Said = { out: string; err: string; code: number }

/** Runs the command on the database of a service. */
export async function operator({ at }: Pick<Api, 'at'>, ...words: string[]): Promise<Said> {
  const said = { out: '', err: '', code: 0 }
  const program = new Command().exitOverride()
  operatorCommand(program, {
    open: () => openDatabaseTools({ environment: { DATABASE_URL: at.db.url }, cwd: '/' }),
    out: (text) => (said.out += text),
    err: (text) => (said.err += text),
    exitWith: (code) => (said.code = code),
  })
  await program.parseAsync(['node', 'svc', 'operator', ...words])
  return said
}

/** Logs the agent of a workspace in to the control plane. */
export async function loginAtControlPlane(
  api: Api,
  { key, agentId, controlPlane }: Workspace,
  scope?: string,
): Promise<{ status: number; token: string; scope: string }> {
  const selector = { agent_id: agentId, tenant_id: controlPlane }
  const { status, body } = await api.login(key, selector, scope)
  return { status, token: String(body['access_token']), scope: String(body['scope']) }
}

/** An agent with deployment scopes, and its token. */
export async function operatorOfDeployment(
  api: Api,
): Promise<{ readonly workspace: Workspace; readonly token: string }> {
  const workspace = await api.workspace('Operators')
  const { code, err } = await operator(
    api,
    'appoint',
    workspace.agentId,
    '--scope',
    'deployment:manage',
  )
  if (code !== 0) throw new Error(err)
  return { workspace, token: (await loginAtControlPlane(api, workspace)).token }
}
