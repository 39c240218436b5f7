/** Webhook subscriptions of a tenant. The async plane sends their deliveries. */
import { boundHandlers, defineActor } from '../../../runtime/kernel/actor.js'
import {
  listEvents,
  listWebhookDeliveries,
  recoverWebhookDeliveries,
  replayWebhookDelivery,
} from './history.js'
import { webhookSigner } from '../signer/protocol.js'
import type { WebhooksNeeds } from './needs.js'
import { type WebhooksProtocol, webhooks } from './protocol.js'
import { rotateWebhookSecret } from './rotation.js'
import {
  createWebhook,
  deleteWebhook,
  getWebhook,
  listWebhooks,
  replaceWebhook,
} from './subscriptions.js'
import { CONCURRENT_MAX, testPlaces, type TestTools, testWebhook } from './test-delivery.js'

export const webhooksActor = defineActor<WebhooksProtocol, WebhooksNeeds>({
  address: webhooks,
  asks: { signer: webhookSigner },
  mailbox: { capacity: 1024, inflightMax: 2 * CONCURRENT_MAX },
  lane: {
    replaceWebhook: ({ webhookId }) => webhookId,
    deleteWebhook: ({ webhookId }) => webhookId,
    rotateWebhookSecret: ({ webhookId }) => webhookId,
    replayWebhookDelivery: ({ webhookId }) => webhookId,
    recoverWebhookDeliveries: ({ webhookId }) => webhookId,
  },
  supervision: { onFailure: 'resume' },
  create: (needs) =>
    boundHandlers<WebhooksProtocol, TestTools>(
      {
        listWebhooks,
        createWebhook,
        getWebhook,
        replaceWebhook,
        deleteWebhook,
        testWebhook,
        rotateWebhookSecret,
        listWebhookDeliveries,
        replayWebhookDelivery,
        listEvents,
        recoverWebhookDeliveries,
      },
      { ...needs, places: testPlaces(needs) },
    ),
})
