/**
 * `svc agent delegate`: requests a delegation, shows the user the link, waits, and stores the
 * token.
 */
import { askForDelegation, awaitDelegation } from '../../clients/client/delegation.js'
import { httpClient } from '../../clients/client/http.js'
import { readMetadata } from '../../clients/client/registration.js'
import type { Run } from './run.js'
import { current, direct, keepDelegation, usingIdentity } from './tokens.js'
import { withTarget } from '../target.js'

type Wishes = { scope: string; audience?: string; purpose?: string; tenantId?: string }

export async function delegate(
  run: Run,
  { scope, audience, purpose, tenantId }: Wishes,
): Promise<void> {
  // The lock is held only briefly: the user needs minutes to decide, and other commands need the
  // file.
  const place = tenantId === undefined ? {} : { tenantId }
  const token = () =>
    usingIdentity(run, async (held) => (await direct(held, place, false)).access_token)
  const begun = await usingIdentity(run, async (held) => {
    const { access_token: accessToken, tenant_id: tenant } = await current(held, place)
    if (tenant === (await readMetadata(held.http)).controlPlaneTenantId) {
      throw new Error('the control plane has no users: name a tenant with --tenant-id')
    }
    return { baseUrl: held.identity.base_url, accessToken }
  })
  const http = httpClient(begun.baseUrl)
  try {
    const request = await askForDelegation({
      http,
      token: begun.accessToken,
      scope,
      audience,
      purpose,
    })
    show(run, request)
    const granted = await awaitDelegation({
      http,
      request,
      token,
      signal: run.signal,
      clock: run.clock,
    })
    const kept = await usingIdentity(run, (held) => keepDelegation(held, granted))
    const { delegation_id, subject, scope: given } = kept
    if (run.json) {
      run.out(
        `${JSON.stringify(withTarget({ status: 'approved', delegation_id, subject, scope: given }))}\n`,
      )
    } else {
      run.out(`Delegation ${delegation_id}: ${given}\n`)
      run.out('Get its token with: svc agent token --delegation\n')
    }
  } finally {
    await http.close()
  }
}

function show({ out, json }: Run, request: Awaited<ReturnType<typeof askForDelegation>>): void {
  const { verificationUrl, userCode, expiresInSecs } = request
  if (json) {
    const members = {
      status: 'pending',
      verification_url: verificationUrl,
      user_code: userCode,
      expires_in: expiresInSecs,
    }
    return out(`${JSON.stringify(members)}\n`)
  }
  out(`Open ${verificationUrl}\nand check that it shows the code ${userCode}.\n`)
  out(`Waiting up to ${Math.round(expiresInSecs / 60)} minutes for the decision ...\n`)
}
