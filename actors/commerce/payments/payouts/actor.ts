/**
 * Merchant operations on money: balances, settlements, disputes, payouts and statements
 * (docs/reference/commerce.md).
 */
import { defineActor } from '../../../../runtime/kernel/actor.js'
import type { CommerceNeeds } from '../needs.js'
import { closeDispute, createPayout, createStatement } from './manage.js'
import { type PayoutsProtocol, payouts } from './protocol.js'
import {
  getPayout,
  getStatement,
  listBalances,
  listDisputes,
  listPayouts,
  listSettlements,
  listStatements,
} from './read.js'

export const payoutsActor = defineActor<PayoutsProtocol, CommerceNeeds>({
  address: payouts,
  asks: {},
  mailbox: { capacity: 512, inflightMax: 64 },
  lane: { closeDispute: ({ id }) => id },
  supervision: { onFailure: 'resume' },
  handlers: {
    listSettlements,
    listDisputes,
    closeDispute,
    listPayouts,
    getPayout,
    createPayout,
    listBalances,
    listStatements,
    getStatement,
    createStatement,
  },
})
