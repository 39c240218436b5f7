/** `svc agent delegate`: asks a person for authority, shows them where, waits, keeps the token. */
import { askForDelegation, awaitDelegation } from '../client/delegation.js'
import { httpClient } from '../client/http.js'
import type { Run } from './agent-run.js'
import { direct, keepDelegation, usingIdentity } from './agent-tokens.js'

type Wishes = { scope: string; audience?: string; tenantId?: string }

export async function delegate(run: Run, { scope, audience, tenantId }: Wishes): Promise<void> {
  // The file is held for moments only: a person takes minutes, and other commands need it meanwhile.
  const token = () =>
    usingIdentity(run, async (held) => ({
      baseUrl: held.identity.base_url,
      accessToken: (await direct(held, tenantId === undefined ? {} : { tenantId }, false))
        .access_token,
    }))
  const begun = await token()
  const http = httpClient(begun.baseUrl)
  try {
    const request = await askForDelegation({ http, token: begun.accessToken, scope, audience })
    show(run, request)
    const granted = await awaitDelegation({
      http,
      request,
      token: async () => (await token()).accessToken,
      signal: run.signal,
      clock: run.clock,
    })
    const kept = await usingIdentity(run, (held) => keepDelegation(held, granted))
    const { delegation_id, subject, scope: given } = kept
    if (run.json) {
      run.out(`${JSON.stringify({ status: 'approved', delegation_id, subject, scope: given })}\n`)
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
  out(`Open ${verificationUrl}\nand see that it shows the code ${userCode}.\n`)
  out(`Waiting for the answer, for ${Math.round(expiresInSecs / 60)} minutes ...\n`)
}
