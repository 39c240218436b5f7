/** Checks of the other services: kms, mail, the message broker and the coordination backend. */
import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import type { StreamInfo } from '@nats-io/jetstream'
import { connectToNats } from '../../../actors/webhooks/event-sinks/nats.js'
import { kafkaAdmin } from '../../../actors/webhooks/event-sinks/kafka.js'
import {
  hasKafka,
  hasNats,
  type KafkaSettings,
  type NatsSettings,
} from '../../../actors/webhooks/event-sinks/settings.js'
import { openKms } from '../../../storage/platform/kms/client.js'
import type { Coordination } from '../../../storage/platform/coordination/port.js'
import { systemClock } from '../../kernel/clock.js'
import { silentLogger } from '../../kernel/log.js'
import { localKmsSettings } from '../../process/embedded-kms.js'
import {
  ANSWER_MS,
  type Check,
  fail,
  failInProduction,
  guarded,
  ok,
  type Patient,
  whyOf,
  within,
} from './checks.js'

export async function kmsChecks(patient: Patient): Promise<readonly Check[]> {
  const name = 'kms'
  const configured = patient.settings.kms
  const fix =
    configured === undefined
      ? 'start the service: it starts its local kms'
      : 'start the kms (svc kms serve), and check kms.socket_path and both key files'
  return guarded(name, fix, async () => {
    const settings = configured ?? (await localKmsSettings(patient.dataDir))
    const kms = await openKms({
      socketPath: settings.socket_path,
      serverPublicKeyPath: settings.server_public_key_path,
      clientPrivateKeyPath: settings.client_private_key_path,
      log: silentLogger,
      clock: systemClock,
    })
    try {
      const health = await within(ANSWER_MS, kms.health())
      if (health.state !== 'up') return fail(name, `it does not answer: ${health.reason}`, fix)
      const detail = `it wraps with ${health.masterKeyIds.at(-1)}`
      return configured === undefined
        ? failInProduction(
            patient,
            name,
            `${detail}; its master keys lie in the data directory`,
            'run svc kms serve as another user, and configure [kms]',
          )
        : ok(name, detail)
    } finally {
      await kms.close()
    }
  })
}

/** Connects, sends EHLO, STARTTLS and AUTH, and leaves. No message is sent. */
export async function mailChecks(patient: Patient): Promise<readonly Check[]> {
  const name = 'mail'
  const { email } = patient.settings
  if (email.provider === 'log')
    return [
      failInProduction(
        patient,
        name,
        'email.provider is log: messages are written to the log and not sent',
        'configure a mail server: email.provider = "smtp"',
      ),
    ]
  const { smtp_host: host, smtp_port: port, smtp_username: user, smtp_password: pass } = email
  const { smtp_ca_pem_path: caPath, smtp_starttls: requireTLS } = email
  const fix = 'check email.smtp_host, smtp_port, smtp_username, smtp_password and smtp_ca_pem_path'
  return guarded(name, fix, async () => {
    const { createTransport } = await import('nodemailer')
    const transport = createTransport({
      host: host!,
      port,
      secure: false,
      requireTLS,
      ...(user === undefined ? {} : { auth: { user, pass: pass ?? '' } }),
      tls: {
        minVersion: 'TLSv1.2',
        servername: host!,
        ...(caPath === undefined ? {} : { ca: readFileSync(caPath, 'utf8') }),
      },
      connectionTimeout: ANSWER_MS,
      greetingTimeout: ANSWER_MS,
      socketTimeout: ANSWER_MS,
      disableFileAccess: true,
      disableUrlAccess: true,
      logger: false,
    })
    try {
      await within(2 * ANSWER_MS, transport.verify())
      return requireTLS
        ? ok(name, `${host}:${port} accepts EHLO and STARTTLS`)
        : failInProduction(
            patient,
            name,
            `${host}:${port} answers, and email.smtp_starttls is false: messages may travel unencrypted`,
            'set email.smtp_starttls = true',
          )
    } catch (error) {
      return fail(name, `${host}:${port}: ${whyOf(error)}`, fix)
    } finally {
      transport.close()
    }
  })
}

/** Connects to the message brokers and looks for the stream and the topic. No event is sent. */
export async function eventSinkChecks({ settings }: Patient): Promise<readonly Check[]> {
  const { event_sinks: sinks } = settings
  const checks = [
    ...(hasNats(sinks) ? [natsChecks(sinks.nats)] : []),
    ...(hasKafka(sinks) ? [kafkaChecks(sinks.kafka)] : []),
  ]
  return (await Promise.all(checks)).flat()
}

async function kafkaChecks(kafka: KafkaSettings): Promise<readonly Check[]> {
  const name = 'event_sinks'
  const fix = 'check the servers, the login and the CA of [event_sinks.kafka]'
  return guarded(name, fix, async () => {
    const admin = await kafkaAdmin(kafka)
    try {
      await within(2 * ANSWER_MS, admin.connect())
      const { topic } = kafka
      const topics = await within(ANSWER_MS, admin.listTopics())
      return topics.includes(topic)
        ? ok(name, `Kafka answers, and topic ${topic} exists`)
        : fail(
            name,
            `topic ${topic} does not exist, or the account may not describe it`,
            `create it: kafka-topics.sh --create --topic ${topic}`,
          )
    } finally {
      await admin.disconnect()
    }
  })
}

async function natsChecks(nats: NatsSettings): Promise<readonly Check[]> {
  const name = 'event_sinks'
  const fix = 'check the servers, the login and the CA of [event_sinks.nats]'
  return guarded(name, fix, async () => {
    const { jetstreamManager } = await import('@nats-io/jetstream')
    const connection = await connectToNats(nats)
    try {
      const subject = `${nats.subject_prefix}.>`
      const create = `nats stream add ${nats.stream} --subjects '${subject}'`
      const manager = await jetstreamManager(connection, { checkAPI: false, timeout: ANSWER_MS })
      const stream = await manager.streams.info(nats.stream).catch((error: unknown) => error)
      if (stream instanceof Error) {
        return fail(name, `stream ${nats.stream}: ${whyOf(stream)}`, `create it: ${create}`)
      }
      const { subjects } = (stream as StreamInfo).config
      return subjects.includes(subject) || subjects.includes('>')
        ? ok(name, `NATS answers, and stream ${nats.stream} has the subjects ${subject}`)
        : fail(
            name,
            `stream ${nats.stream} has the subjects ${subjects.join(', ')}`,
            `add ${subject} to the subjects of the stream`,
          )
    } finally {
      await connection.close()
    }
  })
}

/** Writes, reads and removes a value. */
export async function coordinationChecks(
  { settings }: Patient,
  open: () => Promise<Pick<Coordination, 'put' | 'get' | 'forget'>>,
): Promise<readonly Check[]> {
  const name = 'coordination'
  const backend = settings.deployment.coordination_backend
  const fix =
    backend === 'postgres'
      ? 'repair the database first'
      : `start ${backend}, or correct the [${backend}] section`
  return guarded(name, fix, async () => {
    const coordination = await within(ANSWER_MS, open())
    const key = `doctor-round-trip:${randomBytes(8).toString('hex')}`
    const value = randomBytes(8)
    const round = async () => {
      await coordination.put(key, value, 60)
      const found = await coordination.get(key)
      await coordination.forget(key)
      return found !== undefined && Buffer.from(found).equals(value)
    }
    return (await within(ANSWER_MS, round()))
      ? ok(name, `a value makes the round trip through ${backend}`)
      : fail(name, `${backend} does not return what was written`, fix)
  })
}
