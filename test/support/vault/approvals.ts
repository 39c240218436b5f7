/** Calls that wait for a person, for tests. */
import type { Answer, Json } from '../api.js'
import { newFixture, ownToken, type Person, present } from '../agents/delegation.js'
import { sql } from '../storage/sql.js'
import { type EgressHouse, type Setting, settingOf } from './egress.js'

export type ApprovalScene = {
  readonly setting: Setting
  /** An owner of the tenant, with two factors. */
  readonly person: Person
  /** Their token. */
  readonly owner: string
  /** A call to the upstream. */
  call(more?: Json, approvalId?: string): Promise<Answer>
  /** Makes a call that waits. @returns the id of its approval. */
  waiting(more?: Json): Promise<string>
  answer(id: string, answer: 'approve' | 'deny', token?: string): Promise<Answer>
  state(id: string, token?: string): Promise<Answer>
}

type ApprovalHouse = Pick<EgressHouse, 'api' | 'running' | 'upstream'>

const SCOPE = 'openid vault:read vault:manage delegations:manage'

/** A tenant with a grant that needs approvals, and a person who owns the tenant. */
export async function approvalScene(
  house: ApprovalHouse,
  grant: Json = { approval: 'each' },
  credential: Json = {},
): Promise<ApprovalScene> {
  const { api, upstream } = house
  const setting = await settingOf(house, credential, grant)
  const { tenantId, credentialId } = setting
  const person = await personOf(house, setting, '{owner}')
  const owner = await ownToken(api, { tenantId }, person, SCOPE)
  const call = (more: Json = {}, approvalId?: string) =>
    api.post(
      '/v1/proxy',
      setting.delegated,
      { credential_id: credentialId, url: `${upstream.origin}/echo`, ...more },
      approvalId === undefined ? {} : { 'x-svc-approval': approvalId },
    )
  return {
    setting,
    person,
    owner,
    call,
    async waiting(more) {
      const { status, body } = await call(more)
      if (status !== 202) throw new Error(`${status}: ${JSON.stringify(body)}`)
      return String(body['approval_id'])
    },
    answer: (id, answer, token = owner) => api.post(`/api/v1/approvals/${id}/${answer}`, token, {}),
    state: (id, token = setting.direct) => api.get(`/v1/approvals/${id}`, token),
  }
}

/** Another person of the tenant with two factors. */
export async function personOf(
  { api, running }: ApprovalHouse,
  { tenantId, operator: token }: Pick<Setting, 'tenantId' | 'operator'>,
  roles: string,
): Promise<Person> {
  const [tenant] = await sql<{ slug: string }>(running)`
    select slug from tenants where id = ${tenantId}`
  const human = await newFixture(api, { token, body: { tenant_slug: tenant!.slug } } as never)
  await sql(running)`
    update tenant_users set roles = ${roles} where tenant_id = ${tenantId}
      and account_id = (select id from accounts where email = ${human.email})`
  return present(api, human)
}

/** Calls that are approved and used, denied, and ended with their grant. @param hear begins to listen to the tenant. */
export async function everyAnswer(
  house: ApprovalHouse,
  hear: (tenant: { readonly token: string }) => Promise<void>,
): Promise<void> {
  const { call, waiting, answer, setting } = await approvalScene(house)
  await hear({ token: setting.operator })
  const used = await waiting()
  const done = [
    await answer(used, 'approve'),
    await call({}, used),
    await answer(await waiting({ method: 'PUT' }), 'deny'),
  ]
  const failed = done.find(({ status }) => status !== 200)
  if (failed !== undefined) throw new Error(JSON.stringify(failed.body))
  await waiting({ method: 'DELETE' })
  const end = `/api/v1/vault/grants/${setting.grantId}/revoke`
  await house.api.post(end, setting.operator).gives(200)
}

/** The events of `everyAnswer`. */
export const approvalEvents = (run: () => Promise<void>) => ({
  'vault.approval.requested': run,
  'vault.approval.approved': run,
  'vault.approval.denied': run,
  'vault.approval.expired': run,
  'vault.approval.used': run,
})
