/** The quota of the token endpoint counts by client and address, in every spelling of the id (RFC 6749 section 2.3.1). */
import test from 'ava'
import { POLICIES } from '../../../../actors/operations/rate-limits/protocol.js'
import { apiOf } from '../../../support/api.js'
import { bootstrapped } from '../../../support/identity/person.js'
import { relyingParty } from '../../../support/oauth/relying-party.js'
import { testService } from '../../../support/service.js'

/** The same decoded text with a different encoding for each number. */
const spelt = (text: string, number: number) =>
  [...text]
    .map((one, at) => ((number >> at) & 1 ? `%${one.charCodeAt(0).toString(16)}` : one))
    .join('')

test('a client that encodes its id in different ways has one quota', async (t) => {
  const environment = { SVC_SERVER__ENDPOINT_THROTTLE__ENABLED: 'true' }
  const running = await testService({ environment })
  const api = apiOf(running)
  t.teardown(async () => {
    await api.close()
    await running.end()
  })
  const person = await bootstrapped(running)
  const party = await relyingParty(running, person, { grantTypes: ['client_credentials'] })
  // More than two minutes allow, in case a minute ends during the test.
  const count = 2 * POLICIES.token[0].limit + 1
  const statuses = await Promise.all(
    Array.from({ length: count }, async (_, number) => {
      const pair = `${spelt(party.clientId, number)}:${party.secret}`
      const authorization = `Basic ${Buffer.from(pair).toString('base64')}`
      const form = { grant_type: 'client_credentials' }
      return (await api.form('/oauth/token', form, { authorization })).status
    }),
  )
  t.deepEqual([...new Set(statuses)].toSorted(), [200, 429])
})

test('requests from another address in the name of a client leave the client its quota', async (t) => {
  const environment = {
    SVC_SERVER__ENDPOINT_THROTTLE__ENABLED: 'true',
    SVC_SERVER__TRUSTED_PROXIES: '["127.0.0.0/8"]',
  }
  const running = await testService({ environment })
  const api = apiOf(running)
  t.teardown(async () => {
    await api.close()
    await running.end()
  })
  const person = await bootstrapped(running)
  const party = await relyingParty(running, person, { grantTypes: ['client_credentials'] })
  const from = (address: string) => ({ 'x-forwarded-for': address })
  const form = { grant_type: 'client_credentials', client_id: party.clientId }
  // Two addresses of one /64 network count as one.
  const attack = await Promise.all(
    Array.from({ length: 2 * POLICIES.token[0].limit + 1 }, async (_, number) => {
      const answer = await api.form('/oauth/token', form, from(`2001:db8::${1 + (number % 9)}`))
      return answer.status
    }),
  )
  t.deepEqual([...new Set(attack)].toSorted(), [401, 429])
  const authorization = `Basic ${Buffer.from(`${party.clientId}:${party.secret}`).toString('base64')}`
  const owner = { ...from('192.0.2.7'), authorization }
  t.is((await api.form('/oauth/token', form, owner)).status, 200)
})
