// Command askback is a grounded assistant that asks before it guesses.
package main

func main() {}
