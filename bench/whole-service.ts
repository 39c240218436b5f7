/** The whole service for benches, and a workspace in it. */
import { createAgentKey } from '../runtime/clients/client/agent.js'
import { solve } from '../runtime/clients/client/solver.js'
import { silentLogger } from '../runtime/kernel/log.js'
import { beginYoung } from '../runtime/kernel/v8-flags.js'
import { startService } from '../runtime/process/startup.js'
import { freePort } from './foreign-program.js'

/**
 * Starts it in this process, like `svc serve`, on its own port. The settings are the defaults of
 * production, except for rate limits, because all requests come from one address, and the proof of
 * work of registrations.
 * @param environment `SVC_` variables that differ.
 */
export async function startWhole(dataDir: string, environment: Readonly<Record<string, string>>) {
  beginYoung()
  const port = await freePort()
  const service = await startService({
    cwd: dataDir,
    uid: process.getuid?.(),
    log: silentLogger,
    environment: {
      SVC_DATA_DIR: dataDir,
      SVC_SERVER__PORT: String(port),
      // The faster parser: generators send nothing that it cannot read.
      SVC_SERVER__HTTP1_PARSER: 'uwebsockets',
      // One gateway thread is measured, except in gateway/threads.
      SVC_SERVER__GATEWAY_THREADS: '1',
      SVC_OIDC__ISSUER_URL: `http://localhost:${port}`,
      SVC_SERVER__ENDPOINT_THROTTLE__ENABLED: 'false',
      SVC_CHALLENGE__POW_DIFFICULTY_BITS: '1',
      SVC_CHALLENGE__POW_MIN_DURATION_SECS: '0',
      ...environment,
    },
  })
  return { service, port }
}

/** Posts JSON to a path of the service. @throws for a response that is not a success. */
export type Post = (path: string, json: unknown) => Promise<Readonly<Record<string, unknown>>>

export type Workspace = {
  readonly tenantId: string
  readonly slug: string
  readonly agentId: string
  /** The access token of its agent. */
  readonly token: string
  /** The email address of its test user. */
  readonly email: string
  readonly password: string
}

/** Registers an agent with a new workspace. */
export async function bootstrap(
  post: Post,
  target: { readonly issuer: string; readonly tenantId: string },
  redirectUris: readonly string[] = [],
): Promise<Workspace> {
  const path = '/api/v1/agents/workspace/bootstrap/pow'
  const start = await post(path, { name: 'Bench', ...createAgentKey().registration(target) })
  const nonce = await solve({
    challengeToken: String(start['challenge_token']),
    difficultyBits: Number(start['difficulty_bits']),
    threads: 1,
  })
  const made = await post(`${path}/complete`, {
    challenge_id: start['challenge_id'],
    nonce,
    organization_name: 'Bench',
    redirect_uris: redirectUris,
    issue_operator_invite: false,
    framework: 'generic',
  })
  const person = made['fixture_end_user'] as { email: string; password: string }
  const agent = made['agent'] as { id: string }
  return {
    tenantId: String(made['tenant_id']),
    slug: String(made['tenant_slug']),
    agentId: agent.id,
    token: String(made['tenant_access_token']),
    email: person.email,
    password: person.password,
  }
}

/** Creates a workspace on a service in another process, with an application for client credentials. */
export async function clientOf(service: {
  readonly port: number
  readonly issuer: string
  readonly tenantId: string
}): Promise<{ readonly clientId: string; readonly secret: string }> {
  const post = async (path: string, json: unknown, bearer?: string) => {
    const answer = await fetch(`http://localhost:${service.port}${path}`, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        ...(bearer === undefined ? {} : { authorization: `Bearer ${bearer}` }),
      },
      body: JSON.stringify(json),
    })
    if (!answer.ok) throw new Error(`${path}: ${answer.status} ${await answer.text()}`)
    return (await answer.json()) as Readonly<Record<string, unknown>>
  }
  const workspace = await bootstrap(post, service)
  const application = await post(
    '/api/v1/applications',
    { name: 'Bench', grant_types: ['client_credentials'], scopes: ['applications:read'] },
    workspace.token,
  )
  return {
    clientId: String(application['client_id']),
    secret: String(application['client_secret']),
  }
}
