// What a reader got another way, a verifier key or a checkpoint, beside what is in this file.

async function judgeKept(text, evidence) {
  const given = text.trim();
  if (given === "") return { state: "", said: "" };
  const { checkpoint } = evidence;
  if (checkpoint === null) return { state: "broken", said: "This file has no checkpoint." };
  try {
    return VERIFIER_KEY.test(given)
      ? await judgeKey(await parseKey(given), checkpoint)
      : judgePin(parseCheckpoint(`${given}\n`), checkpoint);
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    return { state: "open", said: `Neither a verifier key nor a checkpoint (${error.message}).` };
  }
}

async function judgeKey(key, checkpoint) {
  const lines = checkpoint.note.signatures;
  const line = lines.find((one) => one.name === key.name && one.id === key.id);
  if (line === undefined || key.name !== checkpoint.origin) {
    return { state: "broken", said: "This key did not sign the checkpoint of this file." };
  }
  const holds = await isSigned(checkpoint.note.text, line, key);
  if (holds === null) return { state: "open", said: "This browser has no Ed25519 to check it with." };
  return holds
    ? { state: "held", said: "This key signed the checkpoint of this file." }
    : { state: "broken", said: "The signature by this key does not fit the checkpoint." };
}

function judgePin(pin, checkpoint) {
  if (pin.origin !== checkpoint.origin) {
    return { state: "broken", said: `Your checkpoint is of another log, ${pin.origin}.` };
  }
  if (pin.size !== checkpoint.size) {
    const sizes = `Your checkpoint has ${pin.size} entries and this one ${checkpoint.size}`;
    const how = "affidavit verify LEDGER --pinned NOTE";
    return {
      state: "open",
      said: `${sizes}: whether one grew out of the other no file of a session shows. ${how} does.`,
    };
  }
  return pin.root === checkpoint.root
    ? { state: "held", said: "It is the checkpoint of this file: the same entries, the same root." }
    : { state: "broken", said: "A fork: your checkpoint has as many entries, and another root." };
}
