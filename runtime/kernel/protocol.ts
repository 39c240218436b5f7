/** The types that describe an actor's messages. Types only, plus one constructor. */

/** A message that is answered with one of the tagged outcomes of `Reply`. */
export type Ask<Message, Reply extends { tag: string }> = { message: Message; reply: Reply }

/** A message without an answer. Delivered at most once. */
export type Send<Message> = { message: Message; reply: undefined }

/** Message name -> its request and its reply. */
export type Protocol = Record<string, { message: unknown; reply: unknown }>

/** The name of an actor, carrying its protocol as a phantom type. */
export type Address<P extends Protocol> = {
  readonly name: string
  /**
   * Messages that the kernel may send again after the actor restarted while the first was in
   * flight.
   */
  readonly idempotent: readonly (keyof P & string)[]
  /** Messages that do not start the thread of the actor. Before its first use they are refused. */
  readonly passive?: readonly (keyof P & string)[] | undefined
  readonly protocol?: P
}

/**
 * Names an actor. `idempotent` lists the messages that may be repeated after a restart, `passive` those that do not start
 * its thread.
 */
export function address<P extends Protocol>(
  name: string,
  idempotent: readonly (keyof P & string)[] = [],
  passive: readonly (keyof P & string)[] = [],
): Address<P> {
  return { name, idempotent, passive }
}
